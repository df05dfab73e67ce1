"""What solvers cost: `dyn explain`, `dyn bench`, and the peers it calls."""

from collections import Counter
from importlib.metadata import PackageNotFoundError

import pytest

import dyn_core as dyn
from dyn_core.bench.cases import STATES, named
from dyn_core.bench.explain import origins
from dyn_core.bench.measure import count_flops
from dyn_core.bench.peers import PEERS
from dyn_core.cli import main
from dyn_core.engines import native

NATIVE = pytest.mark.skipif(bool(native.missing()), reason=native.missing())


@NATIVE
def test_explain_says_what_a_solver_costs(capsys):
    """Operations by kind, where they arise, the kernels, and their time."""
    assert main(["explain", "aba", "two_link"]) == 0
    said = capsys.readouterr().out
    assert "aba for two_link, 2 dof: " in said and " flops" in said
    assert "required of: joint" in said
    assert "kernel scalar: " in said and "kernel lanes: " in said
    assert "%  aba.py: respond" in said and "ns of a core" in said
    assert main(["explain", "rnea", "two_link", "--ir", "lanes"]) == 0
    assert "define i64 @lanes(" in capsys.readouterr().out
    assert main(["explain", "rnea", "two_link", "--assembly", "scalar"]) == 0
    assert "scalar:" in capsys.readouterr().out
    assert main(["explain", "rnea", "two_link", "--graph"]) == 0
    assert "%0 = input" in capsys.readouterr().out
    assert main(["explain", "jacobian", "two_link", "--frame", "nowhere"]) == 1
    assert "no link is called 'nowhere'" in capsys.readouterr().err


def test_every_operation_has_an_origin(shipped):
    """The shares add up to the Graph that is run, for each line and function."""
    for name, robot in (("rnea", "arm7"), ("aba", "quadruped")):
        program = dyn.solver(name).build(shipped[robot], engine="graph")
        found = origins(program.text, sum(port.size for port in program.inputs))
        kinds = Counter(node.op for node in program.graph.nodes)
        for op, n in found.kinds.items():
            assert kinds[op] == n
        assert found.flops == count_flops(program.graph)
        assert sum(found.lines.values()) == pytest.approx(found.cost)
        assert not [place for place in found.functions if place.startswith("?")]


@NATIVE
def test_bench_prints_a_table(capsys):
    """Figures of each solver, with any peers that are asked for and there."""
    command = ["bench", "--robot", "two_link", "--solvers", "rnea,crba", "--peers", ""]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "multiply-adds: " in said and "errors [ulp]: sin 0." in said
    assert "two_link: 2 dof, fixed base, two_link.urdf" in said
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert rows["solver"][:3] == ["solver", "ns/call", "M/s"]
    assert float(rows["rnea"][1]) > 0 and float(rows["crba"][2]) > 0
    assert main([*command, "--markdown"]) == 0
    assert "| rnea | " in capsys.readouterr().out
    assert main(["bench", "--solvers", "nothing"]) == 1
    assert "no benchmark of 'nothing'; known: rnea" in capsys.readouterr().err
    assert main(["bench", "--peers", "nobody"]) == 1
    assert "no peer 'nobody'; known: pinocchio" in capsys.readouterr().err


@NATIVE
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_peers_can_be_called(peer, floating):
    """Each peer's statements run on each kind of base; values are for other tests."""
    try:
        PEERS[peer].version()
    except PackageNotFoundError:
        pytest.skip(f"{peer} is not installed")
    robot = named("quadruped" if floating else "arm7", floating)
    made = PEERS[peer](robot, STATES)
    assert "rnea" in made.calls
    for statement, states, names in (*made.calls.values(), *made.batches.values()):
        for state in states[:2]:
            space = {**made.space, **dict(zip(names.split(", "), state, strict=True))}
            exec(statement, space)
