#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the shell scripts: their options, and what install.sh asks of apt, which is a stand-in here."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUBS = {
    "dpkg-query": 'for name; do :; done; case " $HAVE " in *" $name "*) printf installed ;; *) exit 1 ;; esac',
    "apt-get": 'echo "apt-get $*" >>"$CALLS"',
    "sudo": 'echo "sudo" >>"$CALLS"; exec "$@"',
    "id": 'echo "${USER_ID:-0}"',
}
NEEDED = ("bash", "awk", "env", "timeout", "dirname", "sed")


def run(*command, env=None):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env=env)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.calls = self.bin / "calls"
        for name in NEEDED:
            found = run("bash", "-c", f"type -P {name}").stdout.strip()
            (self.bin / name).symlink_to(found)

    def install(self, *groups, stubs=tuple(STUBS), have="", user="0"):
        for name in stubs:
            (self.bin / name).write_text(f"#!/bin/bash\n{STUBS[name]}\n")
            (self.bin / name).chmod(0o755)
        env = {"PATH": str(self.bin), "HAVE": have, "CALLS": str(self.calls), "USER_ID": user}
        return run(str(ROOT / "tools/install.sh"), *groups, env=env)

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def packages(self, group):
        lines = (ROOT / "packaging/apt-packages.txt").read_text().splitlines()
        return [line.split()[0] for line in lines if not line.startswith("#") and line.split()[1] == group]

    def test_root_installs_what_is_missing_and_no_more(self):
        present = self.packages("demo")[1:]
        result = self.install("demo", have=" ".join(present))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"Installing with apt: {self.packages('demo')[0]}\n", result.stderr)
        self.assertEqual(len(self.called()), 2)
        self.assertTrue(self.called()[0].endswith(" update"))
        self.assertTrue(self.called()[1].endswith(f"install -y --no-install-recommends {self.packages('demo')[0]}"))

    def test_nothing_is_asked_when_all_is_there(self):
        every = self.packages("demo") + self.packages("tools")
        result = self.install("demo", "tools", have=" ".join(every), user="1000")
        self.assertEqual((result.returncode, self.called()), (0, []), result.stderr)

    def test_a_package_of_two_groups_is_named_once(self):
        self.install("demo", "test")
        self.assertEqual(self.called()[1].split().count("python3"), 1)

    def test_others_go_through_sudo(self):
        result = self.install("demo", user="1000")
        self.assertIn("through sudo", result.stderr)
        self.assertEqual([line.split()[0] for line in self.called()], ["sudo", "apt-get", "sudo", "apt-get"])

    def test_without_sudo_the_command_is_named(self):
        result = self.install("demo", user="1000", stubs=("dpkg-query", "apt-get", "id"))
        self.assertEqual((result.returncode, self.called()), (1, []))
        self.assertIn("apt-get install --no-install-recommends python3", result.stderr)

    def test_a_system_without_apt_is_left_alone(self):
        result = self.install("demo", stubs=("id",))
        self.assertEqual(result.returncode, 0)
        self.assertIn("No apt on this machine", result.stderr)

    def test_wrong_groups(self):
        self.assertEqual(self.install().returncode, 2)
        self.assertEqual(self.install("nosuch").returncode, 2)


class Options(unittest.TestCase):
    def fails(self, code, words, *command):
        result = run(*command)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr)

    def test_help_shows_the_ways_to_call(self):
        for script in ("./try.sh", "./test.sh"):
            result = run(script, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertGreaterEqual(result.stdout.count(script), 3)

    def test_wrong_options(self):
        self.fails(2, "unknown option --nosuch", "./try.sh", "--nosuch")
        self.fails(2, "./try.sh", "./try.sh", "-m")
        self.fails(2, "./try.sh", "./try.sh", "one", "two")
        self.fails(2, "unknown option --nosuch", "./test.sh", "--nosuch")
        self.fails(2, "usage", "tools/format.sh", "--nosuch")
        self.fails(2, "SECONDS", "tools/fuzz.sh", "--nosuch")

    def test_a_model_that_is_not_there(self):
        self.fails(3, "no such file", "./try.sh", "-m", "/nonexistent.gguf")
        self.fails(3, "no such recording", "./try.sh", "/nonexistent.wav")


if __name__ == "__main__":
    unittest.main()
