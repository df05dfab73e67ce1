"""Three workers, each in a network namespace of its own; one is killed midway."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from importlib.util import find_spec

import numpy as np
import pytest

import dyn_core as dyn

if find_spec("distributed") is None:  # it takes long to import
    pytest.skip("distributed is not installed", allow_module_level=True)

pytestmark = pytest.mark.full  # namespaces, and processes that take seconds to start

ROWS, CHUNK = 40_000, 500
HUB, NAMES = "dyn-hub", ("dyn-w1", "dyn-w2", "dyn-w3")
ADDRESS = "10.213.7.1"  # of a bridge that only these namespaces have

CLIENT = """
    import json, os, signal, sys
    import numpy as np
    import distributed
    import dyn_core as dyn

    folder, chunk, victim, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    names = ("q", "qd", "qdd")
    mode = "r" if kind == "mapped" else None
    states = [np.load(f"{folder}/{name}.npy", mmap_mode=mode) for name in names]
    rnea = dyn.solver("rnea").build(dyn.load("arm7"))
    seen = []

    def progress(done, rows):
        seen.append(done)
        if victim and done >= rows // 3 and not os.path.exists(f"{folder}/killed"):
            open(f"{folder}/killed", "w").close()
            os.kill(victim, signal.SIGKILL)

    with distributed.Client("tcp://10.213.7.1:8786", timeout=60) as client:
        client.wait_for_workers(3, timeout=120)
        before = sorted(x.split("//")[1].split(":")[0] for x in client.nthreads())
        client.run(lambda: None)
        rnea.map(*states, out=f"{folder}/{kind}.npy", chunk_rows=chunk,
                 scheduler=client, progress=progress)
        after = sorted(x.split("//")[1].split(":")[0] for x in client.nthreads())
    print(json.dumps([before, after, len(seen)]))
"""


def ip(*args):
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True)


@pytest.fixture
def namespaces():
    """A hub and three namespaces, each with a link to the hub's bridge."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need the command ip (iproute2)")
    with ExitStack() as cleanup:
        for name in (HUB, *NAMES):
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"there are no network namespaces here: {error.stderr}")
            cleanup.callback(ip, "netns", "delete", name)
            ip("-n", name, "link", "set", "lo", "up")
        try:
            ip("-n", HUB, "link", "add", "br0", "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"there are no bridges here: {error.stderr}")
        ip("-n", HUB, "addr", "add", f"{ADDRESS}/24", "dev", "br0")
        ip("-n", HUB, "link", "set", "br0", "up")
        for k, name in enumerate(NAMES):
            ip(
                "-n",
                HUB,
                "link",
                "add",
                f"v{k}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                name,
            )
            ip("-n", HUB, "link", "set", f"v{k}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.213.7.{11 + k}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield


def started(cleanup, namespace, *args):
    """Start a module in a namespace; it is ended at the end."""
    inside = ["ip", "netns", "exec", namespace, sys.executable, "-m"]
    process = subprocess.Popen(
        [*inside, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cleanup.callback(process.wait)
    cleanup.callback(process.kill)
    return process


@pytest.mark.parametrize("kind", ["mapped", "sent"])
def test_a_worker_killed_midway_loses_nothing(namespaces, tmp_path, kind):
    """Whether workers read the files themselves or are sent their rows."""
    states = np.random.default_rng(2).normal(size=(3, ROWS, 7))
    for name, x in zip(("q", "qd", "qdd"), states, strict=True):
        np.save(tmp_path / f"{name}.npy", x)
    with ExitStack() as cleanup:
        started(
            cleanup,
            HUB,
            "distributed.cli.dask_scheduler",
            "--host",
            ADDRESS,
            "--port",
            "8786",
            "--no-dashboard",
        )
        workers = [
            started(cleanup, name, "distributed.cli.dask_worker", f"tcp://{ADDRESS}:8786",
                    "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
            for name in NAMES
        ]  # fmt: skip
        code = "\n".join(line[4:] for line in CLIENT.splitlines())
        inside = ["ip", "netns", "exec", HUB, sys.executable, "-c", code]
        args = [str(x) for x in (tmp_path, CHUNK, workers[1].pid, kind)]
        run = subprocess.run(
            [*inside, *args], capture_output=True, text=True, timeout=250
        )
        assert run.returncode == 0, run.stderr
        assert workers[1].wait(10) == -signal.SIGKILL
        assert workers[0].poll() is None and workers[2].poll() is None
    before, after, count = json.loads(run.stdout.splitlines()[-1])
    assert before == ["10.213.7.11", "10.213.7.12", "10.213.7.13"]
    assert "10.213.7.12" not in after
    assert count == ROWS // CHUNK
    lines = (tmp_path / f"{kind}.npy.journal").read_text().splitlines()[1:]
    chunks = [json.loads(x.rpartition(" ")[0])[0] for x in lines]
    assert sorted(chunks) == list(range(ROWS // CHUNK))
    tau = np.load(tmp_path / f"{kind}.npy")
    wanted = dyn.solver("rnea").build(dyn.load("arm7"))(*states)
    assert (tau == wanted).all()
