#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""consonant pull against servers on this machine that have the faults of real ones: test_pull.py PROGRAM"""
import hashlib
import http.server
import json
import os
import pathlib
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LIMIT = 60
PROGRAM = ""
BODY = bytes(range(256)) * 12000  # 3 MB


class Server(http.server.ThreadingHTTPServer):
    """What it does is told by `files` (path: bytes) and `faults` (path: list of faults, one a request)."""

    daemon_threads = True

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.seen, self.etags = {}, {}, [], True
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://{'localhost' if certificate else '127.0.0.1'}:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # connections are torn on purpose

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, path = self.server, self.path.split("?")[0]
        server.seen.append((self.path, dict(self.headers)))
        faults = server.faults.get(path, [])
        fault = faults.pop(0) if faults else None
        if isinstance(fault, int):
            return self.answer(fault, b"<html>an error</html>", {"Content-Type": "text/html"})
        if isinstance(fault, tuple) and fault[0] == "redirect":
            return self.answer(302, b"", {"Location": fault[1], **(fault[2] if len(fault) > 2 else {})})
        if path not in server.files:
            return self.answer(404, b"<html>none</html>", {"Content-Type": "text/html"})
        self.send_file(server.files[path], fault)

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, body, fault):
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        start, wanted = 0, self.headers.get("Range")
        if wanted and fault not in ("no ranges", "too short") and self.headers.get("If-Range") in (None, etag):
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                return self.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
        part = body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "text/html" if fault == "page" else "application/octet-stream")
        if fault != "chunked":
            self.send_header("Content-Length", len(part) + (1000 if fault == "too short" else 0))
        if start:
            at = start + (1 if fault == "other range" else 0)
            self.send_header("Content-Range", f"bytes {at}-{len(body) - 1}/{len(body)}")
        if self.server.etags:
            self.send_header("ETag", etag)
        if fault == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault == "chunked":
            for at in range(0, len(part), 100000):
                piece = part[at:at + 100000]
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        elif fault in ("drop", "stall"):
            self.wfile.write(part[:1200000])
            self.wfile.flush()
            if fault == "stall":
                time.sleep(8)
            self.close_connection = True
        else:
            self.wfile.write(part)
            self.close_connection = self.close_connection or fault == "too short"


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def git_blob(body):
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="consonant-pull-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.models = self.folder / "cache/consonant/models"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), "HF_ENDPOINT": self.server.url,
                            "no_proxy": "*", "HF_TOKEN": ""}
        self.server.files["/m.gguf"] = BODY
        self.url = self.server.url + "/m.gguf"

    def start(self, *arguments, **more):
        return subprocess.Popen([PROGRAM, "pull", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment, **more)

    def pull(self, *arguments, code=0, **more):
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, code, err)
        if code:
            self.assertEqual(out, "")
            self.assertIn("error: ", err)
        return out, err

    def part(self, body, etag=None, url=None):
        """Leaves what an interrupted pull would have."""
        self.models.mkdir(parents=True, exist_ok=True)
        (self.models / "m.gguf.part").write_bytes(body)
        note = {"url": url or self.url, "validator": etag if etag is not None else f'"{hashlib.md5(BODY).hexdigest()}"', "size": len(BODY)}
        (self.models / "m.gguf.part.json").write_text(json.dumps(note))

    def assert_whole(self):
        self.assertEqual((self.models / "m.gguf").read_bytes(), BODY)
        self.assertEqual([p.name for p in self.models.iterdir()], ["m.gguf"])


class Files(Case):
    def test_a_file(self):
        out, err = self.pull(self.url, "--hash", sha256(BODY).upper())
        self.assertEqual((out, err), (f"{self.models}/m.gguf\n", ""))
        self.assert_whole()
        self.pull(self.url, "--hash", sha256(BODY))
        self.assertEqual(len(self.server.seen), 1)  # it was there

    def test_json_and_output(self):
        out, _ = self.pull(self.url, "-o", self.folder / "here.bin", "--json")
        document = json.loads(out)
        self.assertEqual(document["files"], [{"path": f"{self.folder}/here.bin", "bytes": len(BODY), "sha256": sha256(BODY)}])
        (self.folder / "there").mkdir()
        self.pull(self.url, "-o", self.folder / "there")
        self.assertEqual((self.folder / "there/m.gguf").read_bytes(), BODY)

    def test_without_a_length(self):
        self.server.faults["/m.gguf"] = ["chunked"]
        self.pull(self.url)
        self.assert_whole()

    def test_goes_on_where_it_was(self):
        self.part(BODY[:1000000])
        self.pull(self.url)
        self.assertEqual(self.server.seen[0][1]["Range"], "bytes=1000000-")
        self.assert_whole()

    def test_a_changed_file_is_fetched_from_the_start(self):
        self.part(b"x" * 1000000, etag='"another"')
        self.pull(self.url)
        self.assert_whole()

    def test_a_part_of_another_url_is_no_beginning(self):
        self.part(b"x" * 1000, url="http://elsewhere/m.gguf")
        self.pull(self.url)
        self.assertNotIn("Range", self.server.seen[0][1])
        self.assert_whole()

    def test_a_server_without_ranges(self):
        self.part(BODY[:1000000])
        self.server.faults["/m.gguf"] = ["no ranges"]
        self.pull(self.url)
        self.assert_whole()

    def test_a_server_without_validators(self):
        self.server.etags = False
        self.part(b"x" * 1000, etag="")
        self.pull(self.url)
        self.assert_whole()

    def test_a_spoilt_part_is_noticed_by_the_hash(self):
        self.part(b"x" * 1000000)
        _, err = self.pull(self.url, "--hash", sha256(BODY))
        self.assertIn("again from the start", err)
        self.assert_whole()

    def test_a_part_that_is_whole_or_longer(self):
        self.part(BODY)
        self.pull(self.url)
        self.assert_whole()
        (self.models / "m.gguf").unlink()
        self.part(BODY + b"more")
        self.pull(self.url)
        self.assert_whole()


class Faults(Case):
    def test_a_dropped_connection_is_taken_up_again(self):
        self.server.faults["/m.gguf"] = ["drop", "drop"]
        _, err = self.pull(self.url)
        self.assertEqual([headers.get("Range") for _, headers in self.server.seen], [None, "bytes=1200000-", "bytes=2400000-"])
        self.assertIn("trying again", err)
        self.assert_whole()

    def test_a_stalled_connection_is_given_up(self):
        self.server.faults["/m.gguf"] = ["stall"]
        self.pull(self.url, "--timeout", 1)
        self.assert_whole()

    def test_a_body_shorter_than_said(self):
        self.server.faults["/m.gguf"] = ["too short"] * 9
        _, err = self.pull(self.url, "--retries", 1, code=1)
        self.assertIn("gave up after", err)
        self.assertFalse((self.models / "m.gguf").exists())

    def test_another_range_than_asked_for(self):
        self.part(BODY[:1000000])
        self.server.faults["/m.gguf"] = ["other range"]
        self.assertIn("byte 1000000 was asked for, 1000001 came", self.pull(self.url, code=1)[1])

    def test_busy_servers_are_asked_again(self):
        self.server.faults["/m.gguf"] = [500, 503, 429]
        self.pull(self.url)
        self.assertEqual(len(self.server.seen), 4)
        self.server.faults["/m.gguf"] = [500] * 9
        self.assertIn("HTTP status 500; gave up after 3 tries", self.pull(self.url, "--force", "--retries", 2, code=1)[1])
        self.assert_whole_kept()

    def assert_whole_kept(self):
        self.assertEqual((self.models / "m.gguf").read_bytes(), BODY)

    def test_a_missing_or_forbidden_file(self):
        self.assertIn("there is no such file", self.pull(self.server.url + "/none.gguf", code=3)[1])
        self.server.faults["/m.gguf"] = [403]
        self.assertIn("HF_TOKEN", self.pull(self.url, code=3)[1])
        self.assertEqual(len(self.server.seen), 2)

    def test_a_wrong_hash_leaves_nothing(self):
        _, err = self.pull(self.url, "--hash", "0" * 64, code=3)
        self.assertIn(f"its SHA-256 is {sha256(BODY)}, {'0' * 64} wanted", err)
        self.assertEqual(list(self.models.iterdir()), [])

    def test_a_page_and_an_empty_file(self):
        self.server.faults["/m.gguf"] = ["page"]
        self.assertIn("is a web page", self.pull(self.url, code=3)[1])
        self.server.files["/empty"] = b""
        self.assertIn("is empty", self.pull(self.server.url + "/empty", code=3)[1])

    def test_nobody_there(self):
        self.assertIn("gave up after 1 tries", self.pull("http://127.0.0.1:9/m.gguf", "--retries", 0, code=1)[1])

    def test_the_disk_is_full(self):
        def limit():  # a file of at most 1 MB: the write fails as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, err = self.pull(self.url, code=1, preexec_fn=limit, restore_signals=False)
        self.assertIn("can't be written: File too large", err)
        self.pull(self.url)
        self.assert_whole()

    def test_wrong_usage(self):
        for arguments in ([], ["--hash", "12", self.url], ["nonsense"], ["ftp://a/b"], ["hf:x"], ["hf:../.."], ["hf:a/b/../c"],
                          [self.server.url + "/"], ["--timeout", "0", self.url], ["--revision", "x", self.url]):
            self.pull(*arguments, code=2)
        self.models.mkdir(parents=True)
        (self.models / "m.gguf").mkdir()
        self.assertIn("is a folder", self.pull(self.url, code=2)[1])

    def test_the_deadline(self):
        self.server.faults["/m.gguf"] = ["stall"]
        begin = time.monotonic()
        self.assertIn("the deadline passed", self.pull(self.url, "--deadline", 1, code=1)[1])
        self.assertLess(time.monotonic() - begin, 6)

    def test_ctrl_c_keeps_what_came(self):
        self.server.faults["/m.gguf"] = ["stall"]
        process = self.start(self.url)
        part = self.models / "m.gguf.part"
        for _ in range(200):
            if part.exists() and part.stat().st_size == 1200000:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertIn("the same command goes on", err)
        self.pull(self.url)
        self.assertEqual(self.server.seen[-1][1]["Range"], "bytes=1200000-")
        self.assert_whole()

    def test_two_at_a_time(self):
        self.server.faults["/m.gguf"] = ["stall"]
        process = self.start(self.url, "--retries", 0, "--timeout", 2)
        for _ in range(200):
            if self.server.seen:
                break
            time.sleep(0.05)
        self.assertIn("by another program", self.pull(self.url, code=1)[1])
        process.communicate(timeout=LIMIT)


class Redirects(Case):
    def test_redirects_are_followed_and_a_hubs_hash_is_believed(self):
        self.server.faults["/r"] = [("redirect", "/m.gguf", {"X-Linked-Etag": f'"{sha256(BODY)}"'})]
        self.pull(self.server.url + "/r", "-o", self.folder / "m")
        self.server.faults["/r"] = [("redirect", "/m.gguf", {"X-Linked-Etag": f'"{"0" * 64}"'})]
        self.assertIn("SHA-256", self.pull(self.server.url + "/r", "-o", self.folder / "n", code=3)[1])

    def test_circles_end(self):
        self.server.faults["/r"] = [("redirect", "/r")] * 50
        self.pull(self.server.url + "/r", code=1)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate")
    def test_from_https_to_http_is_refused(self):
        key, certificate = self.folder / "key.pem", self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=LIMIT)
        secure = Server((certificate, key))
        self.addCleanup(secure.stop)
        secure.files["/m.gguf"] = BODY
        self.pull(secure.url + "/m.gguf", "--retries", 0, code=1)  # a certificate that nobody vouches for
        self.environment["SSL_CERT_FILE"] = str(certificate)
        self.pull(secure.url + "/m.gguf")
        self.assert_whole()
        secure.faults["/r"] = [("redirect", self.url)]
        self.assertIn("https", self.pull(secure.url + "/r", code=1)[1])
        self.assertEqual(self.server.seen, [])


class Hub(Case):
    def repository(self, name, files, revision="main"):
        entries = [{"type": "directory", "path": "onnx", "oid": "0" * 40, "size": 0}]
        for path, body in files.items():
            entry = {"type": "file", "path": path, "size": len(body), "oid": git_blob(body)}
            if len(body) > 1000:
                entry["lfs"] = {"oid": sha256(body), "size": len(body), "pointerSize": 130}
            entries.append(entry)
            self.server.files[f"/{name}/resolve/{revision}/{path}"] = body
        self.server.files[f"/api/models/{name}/tree/{revision}"] = json.dumps(entries).encode()
        return entries

    WHISPER = {"config.json": b"{}", "merges.txt": b"m", "model.safetensors": BODY, "model.fp32-00001-of-00002.safetensors": BODY,
               "pytorch_model.bin": BODY, "flax_model.msgpack": BODY, "README.md": b"#", "onnx/model.onnx": BODY}

    def test_a_repository(self):
        self.repository("openai/whisper-tiny.en", self.WHISPER)
        out, _ = self.pull("hf:openai/whisper-tiny.en")
        folder = self.models / "openai/whisper-tiny.en"
        self.assertEqual(out, f"{folder}\n")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["config.json", "merges.txt", "model.safetensors"])
        self.assertEqual([p.name for p in folder.parent.iterdir()], ["whisper-tiny.en"])
        before = len(self.server.seen)
        self.pull("hf:openai/whisper-tiny.en")
        self.assertEqual(len(self.server.seen), before + 1)  # the list alone
        (folder / "config.json").write_bytes(b"[]")
        self.pull("hf:openai/whisper-tiny.en")
        self.assertEqual((folder / "config.json").read_bytes(), b"{}")

    def test_a_name_of_the_catalogue(self):
        self.assertIn("whisper-large-v3-turbo", self.pull("--list")[0])
        self.repository("openai/whisper-base", self.WHISPER)
        self.assertEqual(self.pull("whisper-base")[0], f"{self.models}/openai/whisper-base\n")

    def test_a_folder_has_its_name_only_when_it_is_whole(self):
        self.repository("a/b", self.WHISPER)
        self.server.faults["/a/b/resolve/main/model.safetensors"] = [404]
        self.pull("hf:a/b", code=3)
        self.assertFalse((self.models / "a/b").exists())
        self.pull("hf:a/b")
        self.assertTrue((self.models / "a/b").exists())

    def test_one_file(self):
        self.repository("a/b", {"x-q4.gguf": BODY, "x-q8.gguf": BODY + b"8"}, revision="v1")
        self.assertIn("say which:\n  hf:a/b/x-q4.gguf", self.pull("hf:a/b", "--revision", "v1", code=3)[1])
        out, _ = self.pull("hf:a/b/x-q8.gguf", "--revision", "v1")
        self.assertEqual(out, f"{self.models}/a/b/x-q8.gguf\n")
        self.assertIn("has no file", self.pull("hf:a/b/none", "--revision", "v1", code=3)[1])
        self.assertIn("--hash wants", self.pull("hf:a/b/x-q4.gguf", "--revision", "v1", "--hash", "0" * 64, code=3)[1])

    def test_what_is_sent_has_to_be_what_was_listed(self):
        self.repository("a/b", {"x.gguf": BODY})
        self.server.files["/a/b/resolve/main/x.gguf"] = BODY[:-1] + b"?"
        self.assertIn("SHA-256", self.pull("hf:a/b", code=3)[1])
        self.server.files["/a/b/resolve/main/x.gguf"] = BODY + b"?"
        self.assertIn("bytes", self.pull("hf:a/b", code=3)[1])
        self.repository("a/c", {"x.gguf": b"small"})
        self.server.files["/a/c/resolve/main/x.gguf"] = b"smell"
        self.assertIn("Git blob", self.pull("hf:a/c", code=3)[1])

    def test_hostile_lists(self):
        for entry in ({"path": "../../x.gguf"}, {"path": "/x.gguf"}, {"oid": "1"}, {"size": -1}, {"size": "1"}):
            entries = self.repository("a/b", {"x.gguf": b"small"})
            entries[1].update(entry)
            self.server.files["/api/models/a/b/tree/main"] = json.dumps(entries).encode()
            self.pull("hf:a/b", code=3)
        for body in (b"{", b"[1]", b'"x"', b"[]", b"[" * 100000):
            self.server.files["/api/models/a/b/tree/main"] = body
            self.pull("hf:a/b", code=3)
        self.assertFalse((self.models / "a").exists())

    def test_the_token_goes_to_the_hub_alone(self):
        self.environment["HF_TOKEN"] = "hf_secret"
        other = Server()
        self.addCleanup(other.stop)
        self.repository("a/b", {"x.gguf": BODY})
        other.files["/x.gguf"] = BODY
        self.server.faults["/a/b/resolve/main/x.gguf"] = [("redirect", other.url.replace("127.0.0.1", "localhost") + "/x.gguf")]
        self.pull("hf:a/b")
        self.assertTrue(all(headers.get("Authorization") == "Bearer hf_secret" for _, headers in self.server.seen))
        self.assertNotIn("Authorization", other.seen[0][1])
        self.pull(self.url)
        self.assertNotIn("Authorization", self.server.seen[-1][1])


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
