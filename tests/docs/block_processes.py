"""Runs programs in processes of their own, forks of this one, which has the imports.

It reads lines of JSON, {"blocks": [[line, code], ...], "page": name, "folder": path},
and writes one for each: {"error": class and message or "", "text": traceback, "missing":
name of a module that is not there, or ""}. Code is Python, or the words of one command.
"""

import importlib
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import dyn_core as dyn
from dyn_core import cli

# What many programs import: once for all.
SHARED = ("dyn_core.engines.llvm", "scipy.optimize", "matplotlib.pyplot")
LONG = 1200  # no page takes so long [s]


def run(program):
    """Run the blocks of a program in its folder; return what went wrong."""
    os.chdir(program["folder"])
    space = {}  # not __main__: what only a script does is left out
    try:
        for line, code in program["blocks"]:
            if not isinstance(code, str):
                execute(code)
                continue
            place = "\n" * line + code  # so that errors name the line of the page
            exec(compile(place, program["page"], "exec"), space)
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else ""
        said = f"{type(error).__name__}: {error}"
        return {"error": said, "text": traceback.format_exc(), "missing": missing}
    return {"error": "", "text": "", "missing": ""}


def execute(line):
    """Run `dyn ...` or `python -c CODE` as a shell would; its output may go to a file.

    Raises:
        RuntimeError: It failed, or neither printed nor wrote anything.
    """
    line = [re.sub("^~", os.getcwd(), word) for word in line]  # it is the home, too
    command, file = (line[:-2], line[-1]) if ">" in line else (line, None)
    out, err, status = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        if command[0] == "dyn":
            status = cli.main(command[1:])
        else:
            exec(command[2], {})
    if file:
        Path(file).write_text(out.getvalue(), encoding="utf-8")
    if status:
        raise RuntimeError(f"{' '.join(line)}: {err.getvalue()}")
    written = file or (line[line.index("-o") + 1] if "-o" in line else None)
    if not (Path(written).exists() if written else out.getvalue().strip()):
        raise RuntimeError(f"{' '.join(line)}: it wrote nothing")


def in_a_fork(program):
    """Run a program in a child process."""
    with tempfile.TemporaryFile("w+") as report:
        child = os.fork()
        if not child:
            signal.alarm(LONG)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            json.dump(run(program), report)
            report.flush()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        report.seek(0)
        text = report.read()
    if code or not text:
        return {"error": f"ended with status {code}", "text": "", "missing": ""}
    return json.loads(text)


if __name__ == "__main__":
    dyn.default_registry()
    for module in SHARED:
        with suppress(ImportError):
            importlib.import_module(module)
    for request in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(request))), flush=True)
