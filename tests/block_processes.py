"""Runs programs in processes of their own, forks of this one, which has the imports.

It reads lines of JSON, {"blocks": [[line, code], ...], "page": name, "folder": path},
and writes one for each: {"error": class and message or "", "text": traceback, "missing":
name of a module that is not there, or ""}. A program without fork is run by its reader.
"""

import json
import os
import signal
import sys
import tempfile
import traceback

import dyn_core as dyn

LONG = 1200  # no page takes so long [s]


def run(program):
    """Run the blocks of a program in its folder; return what went wrong."""
    os.chdir(program["folder"])
    space = {}  # not __main__: what only a script does is left out
    try:
        for line, code in program["blocks"]:
            place = "\n" * line + code  # so that errors name the line of the page
            exec(compile(place, program["page"], "exec"), space)
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else ""
        said = f"{type(error).__name__}: {error}"
        return {"error": said, "text": traceback.format_exc(), "missing": missing}
    return {"error": "", "text": "", "missing": ""}


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
    for request in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(request))), flush=True)
