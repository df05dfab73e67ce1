"""The command dyn doctor and its page."""

import json
import re
from html.parser import HTMLParser

from dyn_core.cli import main
from dyn_core.reports.doctor.examine import doctor
from dyn_core.reports.doctor.report import page

BROKEN = """<robot name="a &lt;b&gt;"><link name="base"/><link name="rod &amp; &lt;i&gt;"><inertial>
  <mass value="1"/><inertia ixx="5" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod &amp; &lt;i&gt;"/></joint></robot>"""


def test_text_and_status(capsys, tmp_path):
    """0 without errors, 1 with errors, 1 with a sentence for no robot, 2 for wrong usage."""
    assert main(["doctor", "two_link", "--samples", "20"]) == 0
    assert "two_link: 0 errors, 0 warnings, 1 hint\n" in capsys.readouterr().out
    path = tmp_path / "broken.urdf"
    path.write_text(BROKEN)
    assert main(["doctor", str(path)]) == 1
    out = capsys.readouterr().out
    assert "ERROR  No body has this inertia  [impossible-inertia]" in out
    assert "What to do: " in out
    assert "Lines for broken.dyn.yaml" in out
    assert main(["doctor", "no_such_robot"]) == 1
    assert "no_such_robot" in capsys.readouterr().err
    for samples in ("0", "1000000000"):  # a thousand million would not end
        assert main(["doctor", "two_link", "--samples", samples]) == 1
        said = capsys.readouterr().err
        assert f"samples {samples}; valid: a whole number, 1 to 100000" in said


def test_json(capsys):
    """Nothing but JSON is printed."""
    assert main(["doctor", "two_link", "--json", "--samples", "20", "--seed", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["robot"] == "two_link"
    assert data["figures"]["positions looked at"] == "20, seed 3"


class Structure(HTMLParser):
    """Tags that are open, attributes that were met, and the visible text."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.spoken, self.severities = [], [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.links += [values[x] for x in ("href", "src", "action") if x in values]
        if tag == "details":
            self.severities.append((values["class"], "open" in values))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.spoken.append(data)


def test_the_page_is_whole_and_needs_nothing_else(capsys, tmp_path):
    """Tags close, names are escaped, nothing is fetched, errors stand first and open."""
    robot, target = tmp_path / "broken.urdf", tmp_path / "report.html"
    robot.write_text(BROKEN)
    assert main(["doctor", str(robot), "--html", str(target)]) == 1
    text = target.read_text(encoding="utf-8")
    read = Structure()
    read.feed(text)
    assert read.open == []
    assert read.links == []
    assert not re.search(r"https?://|@import|url\(", text)
    visible = " ".join(read.spoken)
    assert "a <b>" in visible
    assert "link 'rod & <i>'" in visible
    ranks = [["error", "warning", "hint"].index(kind) for kind, _ in read.severities]
    assert ranks == sorted(ranks)
    assert [opened for _, opened in read.severities] == [rank == 0 for rank in ranks]


def test_a_page_without_findings_says_so():
    """No lists, one sentence."""
    report = doctor("planar3", samples=10)
    bare = type(report)(report.robot, report.source, report.sidecar, ())
    assert "Nothing is doubtful" in page(bare)
    assert "<details" not in page(bare)


def test_the_page_opens_all_findings_and_names_no_folder(tmp_path):
    """A button opens and folds them; texts and JSON keep the paths."""
    file = tmp_path / "broken.urdf"
    file.write_text(BROKEN)
    report = doctor(str(file))
    assert str(tmp_path) in str(report)
    html = page(report)
    assert str(tmp_path) not in html and "broken.urdf" in html
    assert html.count('class="all">show all<') == 1
    bare = type(report)(report.robot, report.source, report.sidecar, ())
    assert 'class="all"' not in page(bare)
