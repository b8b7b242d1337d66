# SPDX-License-Identifier: Apache-2.0
"""The program as its users meet it: exit codes, streams, the shapes of JSON, bad input, Ctrl-C.

test_cli.py PROGRAM TEST_DATA [unittest arguments]
"""

import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

PROGRAM = DATA = None
LIMIT = 120  # seconds for one command: the machine may be busy


def run(*arguments, stdin="", code=0):
    """Runs a command, checks its exit code, returns (stdout, stderr)."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin if isinstance(stdin, bytes) else stdin.encode(),
        capture_output=True,
        timeout=LIMIT,
    )
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, not {code}\nstdout: {out[-500:]}\nstderr: {err[-500:]}")
    return out, err


def read_safetensors(path, name):
    """A tensor of int32 as a flat list."""
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    entry = json.loads(raw[8 : 8 + size])[name]
    begin, end = (8 + size + o for o in entry["data_offsets"])
    kind = {"I32": "i", "I64": "q"}[entry["dtype"]]
    return list(struct.unpack(f"<{(end - begin) // struct.calcsize(kind)}{kind}", raw[begin:end]))


class Case(unittest.TestCase):
    def setUp(self):
        self.models = DATA / "llm" / "models"
        self.llama = self.models / "llama" / "model-f32.gguf"
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, content):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def path(self, name):
        return pathlib.Path(self.folder.name) / name


class Generate(Case):
    def test_greedy_continuations_are_the_goldens(self):
        for name in ("llama", "llama_rope", "qwen2", "qwen3", "gemma3"):
            golden = self.models / name / "golden.safetensors"
            ids = read_safetensors(golden, "input_ids")
            expected = read_safetensors(golden, "greedy_ids")
            tokens = self.file("tokens.txt", " ".join(map(str, ids)))
            for model in (self.models / name / "model-f32.gguf", self.models / name):
                with self.subTest(model=str(model)):
                    out, err = run("generate", "-m", model, "--tokens", tokens, "-n", len(expected), "--temp", 0, "--precision", "f32",
                                   "--ignore-eos", "--emit-tokens")
                    self.assertEqual([int(line) for line in out.split()], expected)
                    self.assertIn("greedy", err)

    def test_a_seed_gives_the_same_text_at_any_thread_count(self):
        texts = {
            run("generate", "-m", self.llama, "-p", "Hello", "-n", 40, "--seed", 7, "--ignore-eos", "--threads", threads)[0]
            for threads in (1, 2, 3)
        }
        self.assertEqual(len(texts), 1)
        other, _ = run("generate", "-m", self.llama, "-p", "Hello", "-n", 40, "--seed", 8, "--ignore-eos")
        self.assertNotIn(other, texts)

    def test_json(self):
        out, err = run("generate", "-m", self.llama, "-p", "Hello", "--raw", "-n", 5, "--ignore-eos", "--json")
        self.assertEqual(err, "")
        self.assertEqual(out.count("\n"), 1)
        document = json.loads(out)
        for key in ("text", "tokens", "logprobs", "prompt_tokens", "stop_reason", "timings"):
            self.assertIn(key, document)
        self.assertEqual(document["stop_reason"], "caller_limit")
        self.assertEqual(len(document["tokens"]), 5)
        self.assertEqual(len(document["logprobs"]), 5)
        self.assertTrue(all(p <= 0 for p in document["logprobs"]))
        again, _ = run("generate", "-m", self.llama, "-p", "Hello", "--raw", "-n", 5, "--ignore-eos", "--json", "--seed", document["seed"])
        self.assertEqual(json.loads(again)["tokens"], document["tokens"])

    def test_a_stop_string_ends_the_text_before_it(self):
        arguments = ("generate", "-m", self.llama, "-p", "Hello", "-n", 40, "--temp", 0, "--ignore-eos", "--json")
        text = json.loads(run(*arguments)[0])["text"]
        stop = text[10:14]
        cut = json.loads(run(*arguments, "--stop", stop)[0])
        self.assertEqual(cut["text"], text[: text.index(stop)])
        self.assertEqual(cut["stop_reason"], "stop_string")

    def test_bias_excludes_a_token(self):
        arguments = ("generate", "-m", self.llama, "-p", "Hello", "-n", 1, "--temp", 0, "--ignore-eos", "--emit-tokens")
        token = run(*arguments)[0].strip()
        self.assertNotEqual(run(*arguments, "--logit-bias", f"{token}=-inf")[0].strip(), token)
        run(*arguments, "--logit-bias", "512=1", code=2)

    def test_a_full_context_is_five(self):
        out, err = run("generate", "-m", self.llama, "-p", "Hello", "--raw", "--context", 20, "--ignore-eos", "--json", code=5)
        document = json.loads(out)
        self.assertEqual(document["stop_reason"], "context_full")
        self.assertEqual(document["prompt_tokens"] + len(document["tokens"]), 20)
        self.assertIn("context", err)

    def test_a_deadline_is_one(self):
        _, err = run("generate", "-m", self.llama, "-p", "Hello", "--ignore-eos", "--deadline", "0.000001", code=1)
        self.assertIn("deadline", err)

    def test_bad_prompts_are_three(self):
        for arguments in (
            ("-p", ""),
            ("-p", "word " * 400),
            ("-p", "Hello", "--context", 3),
            ("-f", self.file("bad.txt", b"\xff\xfe")),
            ("-f", self.file("empty.txt", b"")),
            ("-f", self.path("missing.txt")),
            ("--tokens", self.file("beyond.txt", "512")),
            ("--tokens", self.file("words.txt", "one two")),
        ):
            with self.subTest(arguments=str(arguments)[:60]):
                out, err = run("generate", "-m", self.llama, *arguments, code=3)
                self.assertEqual(out, "")
                self.assertTrue(err.startswith("error: "), err)

    def test_too_much_memory_is_eight(self):
        _, err = run("generate", "-m", self.llama, "-p", "Hello", "--context", 1 << 40, code=8)
        self.assertIn("--context", err)

    def test_an_override_reaches_the_model(self):
        _, err = run("generate", "-m", self.llama, "-p", "Hello", "--override-kv", "tokenizer.ggml.pre=str:none-such", code=3)
        self.assertIn("none-such", err)
        run("generate", "-m", self.llama, "-p", "Hello", "--override-kv", "nonsense", code=2)
        for override, said in (("llama.block_cuont=int:2", "llama.block_cuont"), ("llama.block_count=str:2", "llama.block_count"),
                               ("llama.block_count=float:2", "llama.block_count")):
            _, err = run("generate", "-m", self.llama, "-p", "Hello", "--override-kv", override, code=3)
            self.assertIn(said, err)


class Limits(Case):
    def limited(self, limit, value, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=LIMIT,
                              preexec_fn=lambda: resource.setrlimit(limit, (value, value)))

    def test_numbers_past_their_range_are_two(self):
        for option, value in (("--seed", 1 << 64), ("--seed", "1x"), ("--threads", 1025), ("--threads", 0), ("--temp", "nan"), ("-n", 1 << 64)):
            with self.subTest(option=option, value=value):
                _, err = run("generate", "-m", self.llama, "-p", "Hello", "-n", 1, option, value, code=2)
                self.assertIn(option.strip("-n"), err)
        run("generate", "-m", self.llama, "-p", "Hello", "-n", 1, "--seed", (1 << 64) - 1, "--deadline", "1e300", "--threads", 1024)

    def test_threads_that_cannot_be_started_are_a_failure(self):
        done = self.limited(resource.RLIMIT_AS, 1 << 30, "generate", "-m", self.llama, "-p", "Hello", "-n", 1, "--threads", 1000)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"1000 threads: the system gives no more than", done.stderr)

    def test_a_file_that_finds_no_room_leaves_nothing(self):
        for command in (
            ("convert", self.models / "llama", self.path("out"), "--type", "f16"),
            ("verify", "record", "-m", self.llama, "--text", "Hello", "-o", self.path("out")),
        ):
            with self.subTest(command=command[0]):
                done = self.limited(resource.RLIMIT_FSIZE, 2000, *command)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(b"out: can't be written: File too large", done.stderr)
                self.assertEqual(os.listdir(self.folder.name), [])


class BadModels(Case):
    def check(self, path):
        for command in (("inspect", path), ("generate", "-m", path, "-p", "Hello", "-n", 1)):
            out, err = run(*command, code=3)
            self.assertEqual(out, "")
            self.assertRegex(err, r"^error: .+\n$")

    def test_cut_files(self):
        raw = self.llama.read_bytes()
        cuts = list(range(0, len(raw), 4096))
        for cut in cuts[:4] + cuts[4 :: max(1, len(cuts) // 12)] + [len(raw) - 1]:
            with self.subTest(cut=cut):
                self.check(self.file("cut.gguf", raw[:cut]))

    def test_wrong_beginnings(self):
        raw = self.llama.read_bytes()
        for name, content in {
            "magic": b"GGML" + raw[4:],
            "big-endian": raw[:4] + struct.pack(">I", 3) + raw[8:],
            "version": raw[:4] + struct.pack("<I", 99) + raw[8:],
            "tensors": raw[:8] + b"\xff" * 8 + raw[16:],
            "keys": raw[:16] + b"\xff" * 8 + raw[24:],
            "text": b"Once upon a time\n" * 100,
        }.items():
            with self.subTest(name=name):
                self.check(self.file(f"{name}.gguf", content))

    def test_what_is_no_file(self):
        self.check(self.path("missing.gguf"))
        self.check(self.path("."))
        self.check("/dev/null")


class Text(Case):
    def test_tokenize_and_back(self):
        strings = json.loads((self.models / "llama" / "tokenizer_vectors.json").read_text())["strings"]
        for entry in strings[::8]:
            text = entry["text"]
            with self.subTest(text=text):
                out, _ = run("tokenize", "-m", self.llama, "-f", self.file("text.txt", text))
                self.assertEqual(json.loads(out), entry["ids"])
                self.assertEqual(run("tokenize", "-m", self.llama, "--decode", "-f", self.file("ids.txt", out))[0], text)

    def test_special_tokens(self):
        bos = json.loads(run("tokenize", "-m", self.llama, "<|begin_of_text|>")[0])
        self.assertEqual(bos, [507])
        self.assertGreater(len(json.loads(run("tokenize", "-m", self.llama, "--no-special", "<|begin_of_text|>")[0])), 1)
        self.assertEqual(json.loads(run("tokenize", "-m", self.llama, "--add-special", "a")[0])[0], 507)
        run("tokenize", "-m", self.llama, "--decode", "512", code=3)
        run("tokenize", "-m", self.llama, b"\xff".decode("utf-8", "surrogateescape"), code=3)

    def test_templates(self):
        cases = json.loads((DATA / "templates" / "cases.json").read_text())
        for case in cases["cases"][::6]:
            with self.subTest(template=case["template"], case=case["case"]):
                variables = self.file("v.json", json.dumps(cases["special_tokens"] | case["variables"]))
                arguments = ("chat", "--template", DATA / "templates" / case["template"], "--render", variables, "--now", cases["now"])
                if "error" in case:
                    self.assertEqual(run(*arguments, code=3)[0], "")
                else:
                    self.assertEqual(run(*arguments)[0], case["text"])

    def test_the_models_own_template(self):
        vectors = json.loads((self.models / "llama" / "tokenizer_vectors.json").read_text())
        chat = vectors["chats"][1]
        variables = {key: chat[key] for key in ("messages", "add_generation_prompt")}
        out, _ = run("chat", "-m", self.llama, "--render", self.file("v.json", json.dumps(variables)))
        self.assertEqual(out, chat["text"])


class Chat(Case):
    def test_plain_lines(self):
        out, err = run("chat", "-m", self.llama, "-n", 4, "--temp", 0, "--json", stdin="Hello\n/reset\nHello\n/exit\nHello\n")
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(answers), 2)
        self.assertEqual(answers[0]["tokens"], answers[1]["tokens"])

    def test_once(self):
        out, _ = run("chat", "-m", self.llama, "-n", 4, "-p", "Hello", "--json")
        self.assertGreater(json.loads(out)["prompt_tokens"], 10)

    def terminal(self, *arguments):
        """The program on a terminal of its own; returns wait_for(pattern), send(text), finish(), which gives the exit code."""
        pid, fd = self.pid, self.fd = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])
        seen = bytearray()

        def wait_for(pattern):
            end = time.monotonic() + LIMIT
            while not (match := re.search(pattern, bytes(seen))):
                self.assertLess(time.monotonic(), end, f"no {pattern} in {bytes(seen)[-300:]}")
                if select.select([fd], [], [], 0.1)[0]:
                    try:
                        seen.extend(os.read(fd, 65536))
                    except OSError:  # how a terminal says that its program has gone
                        self.fail(f"ended before {pattern}: {bytes(seen)[-300:]}")
            del seen[: match.end()]

        def finish(close=True):
            done = threading.Event()

            def drain():
                while not done.is_set():
                    if select.select([fd], [], [], 0.05)[0] and not self.read_some(fd):
                        return

            reader = threading.Thread(target=drain, daemon=True)
            reader.start()
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            done.set()
            reader.join()
            if close:
                os.close(fd)
            return code

        return wait_for, lambda text: os.write(fd, text), finish

    @staticmethod
    def read_some(fd):
        try:
            return os.read(fd, 65536)
        except OSError:
            return b""

    def test_a_conversation_on_a_terminal(self):
        wait_for, send, finish = self.terminal("chat", "-m", self.llama, "-n", 3, "--temp", 0, "-v")
        wait_for(rb"> ")
        send("Grüße\r".encode())
        wait_for(rb"stop reason")
        wait_for(rb"> ")
        send(b"/exit\r")
        self.assertEqual(finish(), 0)

    def test_ctrl_c_stops_the_answer_and_twice_leaves(self):
        wait_for, send, finish = self.terminal("chat", "-m", self.llama, "--ignore-eos", "--context", 400000, "-v")
        wait_for(rb"> ")
        send(b"Hello\r")
        wait_for(rb"Hello")
        time.sleep(0.5)
        send(b"\x03")
        wait_for(rb"cancelled")
        wait_for(rb"> ")
        send(b"\x03")
        self.assertEqual(finish(), 130)

    def test_a_question_after_ctrl_c_is_answered(self):
        wait_for, send, finish = self.terminal("chat", "-m", self.llama, "-n", 3, "-v")
        wait_for(rb"> ")
        for _ in range(2):
            send(b"half a question\x03")
            wait_for(rb"again leaves")
            wait_for(rb"> ")
            send(b"Hello\r")
            wait_for(rb"stop reason")
            wait_for(rb"> ")
        send(b"\x03")
        wait_for(rb"again leaves")
        send(b"\x03")
        self.assertEqual(finish(), 130)

    def test_what_is_typed_with_ctrl_c_is_not_lost(self):
        wait_for, send, finish = self.terminal("chat", "-m", self.llama, "-n", 3, "-v")
        wait_for(rb"> ")
        send(b"half a question\x03Hello\r")
        wait_for(rb"again leaves")
        wait_for(rb"stop reason")
        send(b"/exit\r")
        self.assertEqual(finish(), 0)

    def test_a_terminal_is_given_back_as_it_was(self):
        def local_modes():
            return termios.tcgetattr(self.fd)[3]

        for name, leave in {
            "Ctrl-C": lambda: os.write(self.fd, b"\x03"),
            "Ctrl-\\": lambda: os.write(self.fd, b"\x1c"),
            "SIGTERM": lambda: os.kill(self.pid, signal.SIGTERM),
            "SIGHUP": lambda: os.kill(self.pid, signal.SIGHUP),
        }.items():
            with self.subTest(name=name):
                wait_for, send, finish = self.terminal("chat", "-m", self.llama, "-n", 3)
                before = termios.ICANON | termios.ECHO | termios.ISIG
                wait_for(rb"> ")
                if name == "Ctrl-C":  # the second leaves
                    send(b"\x03")
                    wait_for(rb"again leaves")
                    wait_for(rb"> ")
                end = time.monotonic() + LIMIT
                while local_modes() & termios.ICANON and time.monotonic() < end:
                    time.sleep(0.01)
                self.assertFalse(local_modes() & termios.ICANON)
                slave = os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)  # or the modes go with the program
                self.addCleanup(os.close, slave)
                leave()
                finish(close=False)
                self.assertEqual(local_modes() & before, before)
                os.close(self.fd)


class Streams(Case):
    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def endless(self, *more):
        return self.start("generate", "-m", self.llama, "-p", "Hello", "--ignore-eos", "--context", 400000, *more)

    def test_ctrl_c_keeps_what_there_is(self):
        process = self.endless()
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertTrue((first + out).endswith(b"\n"))
        self.assertIn(b"cancelled", err)

    def test_a_reader_that_leaves_ends_it_quietly(self):
        process = self.endless("-q")
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(LIMIT), 1)
        self.assertEqual(err, b"")

    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "generate", "-m", self.llama, "-p", "Hello", "-n", "3"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)

    def test_closed_streams_are_not_mistaken_for_files(self):
        def start(streams, *arguments):
            return subprocess.run(["sh", "-c", f'exec "$@" {streams}', "sh", PROGRAM, *map(str, arguments)], capture_output=True, timeout=LIMIT)

        done = start("<&-", "chat", "-m", self.llama, "-n", 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard input: Bad file descriptor", done.stderr)
        done = start(">&-", "generate", "-m", self.llama, "-p", "Hello", "-n", 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"Bad file descriptor", done.stderr)
        whole, closed = self.path("whole.gguf"), self.path("closed.gguf")
        run("convert", self.models / "llama", whole, "--type", "f16")
        self.assertEqual(start("<&- >&- 2>&-", "convert", self.models / "llama", closed, "--type", "f16").returncode, 0)
        self.assertEqual(closed.read_bytes(), whole.read_bytes())

    def test_quiet_and_verbose(self):
        self.assertEqual(run("generate", "-m", self.llama, "-p", "Hello", "-n", 2, "--temp", 0, "-q")[1], "")
        self.assertIn("cpu", run("generate", "-m", self.llama, "-p", "Hello", "-n", 2, "-v")[1])


class Tools(Case):
    def test_recordings_agree_with_themselves(self):
        tokens = self.file("tokens.txt", "507 39 68 75 75 78")
        a, b, c = (self.path(name) for name in ("a.safetensors", "b.safetensors", "c.safetensors"))
        run("verify", "record", "-m", self.llama, "--tokens", tokens, "-o", a, "--tap", "blk.0/*", "--steps", 2, "--threads", 1)
        run("verify", "record", "-m", self.llama, "--tokens", tokens, "-o", b, "--tap", "blk.0/*", "--steps", 2, "--threads", 2)
        document = json.loads(run("verify", "compare", a, b, "--json")[0])
        for key in ("worst_cosine", "max_abs", "decisions", "disagreements", "first_divergent_node", "source"):
            self.assertIn(key, document)
        self.assertEqual((document["max_abs"], document["disagreements"], document["decisions"]), (0, 0, 8))
        self.assertIn("agree", run("verify", "compare", a, b)[0])
        self.assertEqual(read_safetensors(a, "tokens")[:6], [507, 39, 68, 75, 75, 78])
        run("verify", "record", "-m", self.llama, "--text", "Hello", "-o", c)
        run("verify", "compare", a, c, code=3)
        run("verify", "compare", a, self.llama, code=3)

    def test_what_cannot_be_recorded_is_said_before_anything_runs(self):
        tokens, out = self.file("tokens.txt", "507 39 68"), self.path("a.safetensors")
        record = ("verify", "record", "-m", self.llama, "--tokens", tokens, "-o", out)
        self.assertIn("'blk.9/*'", run(*record, "--tap", "blk.0/*", "--tap", "blk.9/*", code=2)[1])
        self.assertIn("3 tokens and 6 steps", run(*record, "--context", 8, "--steps", 6, code=3)[1])
        self.assertFalse(pathlib.Path(out).exists())
        run(*record, "--context", 8, "--steps", 5)

    def test_another_model_disagrees(self):
        tokens = self.file("tokens.txt", "1 2 3 4 5 6 7 8")
        a, b = self.path("a.safetensors"), self.path("b.safetensors")
        run("verify", "record", "-m", self.llama, "--tokens", tokens, "-o", a)
        run("verify", "record", "-m", self.models / "llama_rope" / "model-f32.gguf", "--tokens", tokens, "-o", b)
        run("verify", "compare", a, b, code=7)

    def test_bench(self):
        out, _ = run("bench", "-m", self.llama, "--prompt", 16, "--gen", 4, "--threads", "1,2", "--repeat", 2, "--json")
        results = json.loads(out)["results"]
        self.assertEqual([r["threads"] for r in results], [1, 2])
        for r in results:
            for key in ("prefill_tokens_per_s", "decode_tokens_per_s", "time_to_first_token_ms"):
                self.assertLessEqual(r[key + "_min"], r[key])
                self.assertLessEqual(r[key], r[key + "_max"])
                self.assertGreater(r[key], 0)
            self.assertGreater(r["peak_bytes"], 1 << 20)
            self.assertGreater(r["decode_share_of_bandwidth"], 0)

    def test_soak(self):
        for device in ("cpu", "emu32"):
            out, _ = run("bench", "-m", self.llama, "--prompt", 12, "--gen", 6, "--soak", 30, "--device", device, "--json")
            soak = json.loads(out)
            self.assertFalse(soak["grew"])
            self.assertEqual(soak["generations"], 30)
            memory = soak["memory"]
            self.assertEqual(memory["warm_up"]["device_bytes"], memory["last"]["device_bytes"])
            self.assertEqual(memory["last"]["device_bytes"] > 0, device == "emu32")
            self.assertGreater(memory["first"]["host_bytes"], 1 << 20)
        run("bench", "-m", self.llama, "--soak", 20, code=2)  # all of them would be warm-up

    def test_doctor(self):
        self.assertIn("cpu", run("doctor")[0])
        model = json.loads(run("doctor", "-m", self.llama, "--device", "cpu", "--json")[0])["model"]
        self.assertEqual(model["device"], "cpu")
        self.assertGreater(model["needed_bytes"], model["weight_bytes"])
        self.assertIn("linear", model["ops"])

    def test_inspect(self):
        document = json.loads(run("inspect", self.llama, "--tensors", "--json")[0])
        self.assertEqual(document["metadata"]["general.architecture"], "llama")
        self.assertEqual(len(document["tensors"]), document["tensor_count"])
        self.assertIn("general.architecture", run("inspect", self.llama)[0])
        json.loads(run("inspect", self.models / "llama", "--json")[0])

    def test_convert(self):
        out = self.path("out.gguf")
        run("convert", self.models / "llama", out, "--type", "f16")
        self.assertEqual(json.loads(run("inspect", out, "--json")[0])["metadata"]["general.architecture"], "llama")
        run("generate", "-m", out, "-p", "Hello", "-n", 2)
        run("convert", self.models / "llama", out, "--type", "q1", code=2)
        run("convert", self.path("missing"), out, "--type", "f16", code=3)
        self.assertIn("is no name of a file", run("convert", self.models / "llama", "", "--type", "f16", code=2)[1])
        run("convert", self.models / "llama", self.path("n" * 255), "--type", "f16")

    def test_convert_writes_through_a_link(self):
        target, link = self.file("target.gguf", "old"), self.path("link.gguf")
        link.symlink_to(target.name)
        run("convert", self.models / "llama", link, "--type", "f16")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_bytes()[:4], b"GGUF")

    def test_a_conversion_that_is_ended_leaves_what_was_there(self):
        out = self.file("out.gguf", "old")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                process = subprocess.Popen([PROGRAM, "convert", str(self.models / "llama_q256"), str(out), "--type", "q4_k_m"],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while process.poll() is None and not self.writes_into_folder(process.pid):
                    pass
                process.send_signal(number)
                process.wait(LIMIT)
                self.assertEqual(os.listdir(self.folder.name), ["out.gguf"])
                self.assertIn(out.read_bytes()[:4], (b"old", b"GGUF"))

    def writes_into_folder(self, pid):
        try:
            return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(self.folder.name) for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:  # one was closed meanwhile
            return False


if __name__ == "__main__":
    PROGRAM, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
