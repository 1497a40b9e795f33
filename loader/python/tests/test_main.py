"""python -m stoker: the programs of the installation."""

import os
import subprocess
import sys

import pytest


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "stoker", *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_help_names_the_programs():
    ran = run("--help")
    assert ran.returncode == 0 and "bench" in ran.stdout and "pack" in ran.stdout


@pytest.mark.parametrize("arguments", [(), ("bnch",)])
def test_wrong_usage_is_status_2_and_a_sentence(arguments):
    ran = run(*arguments)
    assert ran.returncode == 2 and "bench, pack" in ran.stderr and ran.stdout == ""


@pytest.mark.parametrize("name, program", [("bench", "loaderbench"), ("pack", "stoker-pack")])
def test_a_program_on_the_path_is_run_with_its_arguments(tmp_path, name, program):
    if os.path.exists(os.path.join(os.path.dirname(sys.executable), program)):
        pytest.skip("the program is installed beside this Python")
    if os.path.exists(os.path.join(os.path.dirname(__import__("stoker").__file__), "bin", program)):
        pytest.skip("the program is in the package")
    script = tmp_path / program
    script.write_text('#!/bin/sh\necho "$0" "$@"\nexit 7\n')
    script.chmod(0o755)
    ran = run(name, "--repeats", "2", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert ran.returncode == 7 and ran.stdout == f"{script} --repeats 2\n"
    ran = run(name, PATH=str(tmp_path.parent))
    assert ran.returncode == 127 and program in ran.stderr
