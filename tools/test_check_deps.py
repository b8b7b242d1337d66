#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_deps.py: each kind of violation is found in a tree that has it, and in no tree that hasn't."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_deps  # noqa: E402
import cpp_text  # noqa: E402

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
HEADERS = (
    "src/base/error.hpp src/tensor/dtype.hpp src/formats/meta.hpp src/formats/model_file.hpp src/device/gpu.hpp "
    "src/graph/tensor.hpp src/ops/kernel.hpp src/ops/op.hpp src/ops/linear/linear.hpp src/ops/linear/pack.hpp src/ops/silu/silu.hpp "
    "src/blocks/mlp.hpp src/models/llama.hpp src/runtime/program.hpp src/text/tokenizer.hpp src/decode/sampler.hpp "
    "src/audio/mel_filters.hpp src/audio/wav.hpp src/verify/record.hpp src/engine/sequence.hpp src/cli/options.hpp "
    "src/tasks/windows.hpp src/server/http.hpp include/consonant/engine.hpp tests/harness.hpp"
).split()


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in HEADERS:
            self.write(name, "#pragma once\n")

    def write(self, name, text, licence=LICENCE):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(licence + text)

    def faults(self):
        return [str(violation) for violation in check_deps.check_tree(self.root)]

    def fails(self, name, text, *wanted, licence=LICENCE):
        """The file has exactly one fault, and its message says all of `wanted`."""
        self.write(name, text, licence)
        found = self.faults()
        self.assertEqual(len(found), 1, found)
        for words in wanted:
            self.assertIn(words, found[0])

    def passes(self, name, *includes):
        self.write(name, "".join(f'#include "{include}"\n' for include in includes))
        self.assertEqual(self.faults(), [])


class Includes(Tree):
    def test_an_empty_tree_of_headers_is_clean(self):
        self.assertEqual(self.faults(), [])

    def test_every_folder_but_engine_is_refused_the_engine(self):
        for folder in check_deps.FOLDERS:
            name = f"src/{folder}/extra.cpp" if folder != "ops" else "src/ops/silu/silu.cpp"
            self.write(name, '#include "engine/sequence.hpp"\n')
            found = self.faults()
            if folder in ("engine", "server", "cli"):
                self.assertEqual(found, [], folder)
            else:
                self.assertEqual(len(found), 1, (folder, found))
                self.assertIn(f"{name}:2:", found[0])
                self.assertIn('may not include "engine/sequence.hpp"', found[0])
            (self.root / name).unlink()

    def test_every_folder_may_include_base_and_itself(self):
        for folder in check_deps.FOLDERS:
            own = next(name for name in HEADERS if name.startswith(f"src/{folder}/")).removeprefix("src/")
            self.passes(f"src/{folder}/extra.cpp", "base/error.hpp", own)

    def test_text_sees_only_the_metadata_of_formats(self):
        self.passes("src/text/a.cpp", "formats/meta.hpp")
        self.fails("src/text/b.cpp", '#include "formats/model_file.hpp"\n', "src/text/b.cpp:2", "formats/meta.hpp")

    def test_a_builder_sees_no_device_and_no_kernel(self):
        self.passes("src/ops/silu/silu.cpp", "ops/silu/silu.hpp", "graph/tensor.hpp", "ops/linear/linear.hpp",
                    "ops/op.hpp")
        self.fails("src/ops/op.hpp", '#include "ops/kernel.hpp"\n', "ops/kernel.hpp")
        self.write("src/ops/op.hpp", "")
        self.fails("src/ops/silu/silu.cpp", '#include "ops/kernel.hpp"\n', "ops/kernel.hpp")
        self.fails("src/ops/silu/silu.cpp", '#include "device/gpu.hpp"\n', "device/gpu.hpp")
        self.fails("src/ops/silu/silu.cpp", '#include "ops/linear/pack.hpp"\n', "ops/linear/pack.hpp")

    def test_a_kernel_sees_the_device_but_not_the_runtime(self):
        for kind in ("ref.cpp", "cpu.cpp", "gpu.cpp", "cases.cpp"):
            name = f"src/ops/silu/silu.{kind}"
            self.passes(name, "ops/kernel.hpp", "device/gpu.hpp", "graph/tensor.hpp", "ops/linear/pack.hpp")
            self.fails(name, '#include "runtime/program.hpp"\n', name)
            (self.root / name).unlink()

    def test_models_see_builders_and_filter_tables_only(self):
        self.passes("src/models/a.cpp", "ops/silu/silu.hpp", "audio/mel_filters.hpp", "blocks/mlp.hpp", "formats/meta.hpp")
        for named in ("ops/linear/pack.hpp", "ops/kernel.hpp", "audio/wav.hpp", "device/gpu.hpp", "runtime/program.hpp"):
            self.fails("src/models/a.cpp", f'#include "{named}"\n', f'may not include "{named}"')

    def test_blocks_see_builders_only(self):
        self.passes("src/blocks/a.cpp", "ops/silu/silu.hpp", "graph/tensor.hpp")
        self.fails("src/blocks/a.cpp", '#include "ops/kernel.hpp"\n', "ops/kernel.hpp")
        self.fails("src/blocks/a.cpp", '#include "formats/meta.hpp"\n', "formats/meta.hpp")

    def test_the_command_line_goes_through_the_engine(self):
        self.passes("src/cli/a.cpp", "engine/sequence.hpp", "verify/record.hpp", "formats/meta.hpp", "consonant/engine.hpp")
        self.fails("src/cli/a.cpp", '#include "models/llama.hpp"\n', "models/llama.hpp")

    def test_only_engine_server_and_cli_see_the_public_headers(self):
        self.fails("src/decode/a.cpp", '#include "consonant/engine.hpp"\n', "consonant/engine.hpp")

    def test_public_headers_see_nothing_of_src(self):
        self.fails("include/consonant/a.hpp", '#include "base/error.hpp"\n', "nothing of src")

    def test_an_example_is_a_users_program(self):
        self.write("examples/a.cpp", "#include <consonant/engine.hpp>\n#include <vector>\n")
        self.assertEqual(self.faults(), [])
        self.fails("src/engine/a.cpp", "#include <consonant/engine.hpp>\n", "the project's own")
        (self.root / "src/engine/a.cpp").unlink()
        self.write("tests/a.c", "#include <consonant/engine.hpp>\n")
        self.assertEqual(self.faults(), [])
        self.fails("examples/a.cpp", '#include "base/error.hpp"\n', "public headers only")
        self.fails("examples/a.cpp", "#include <base/error.hpp>\n", "public headers only")

    def test_tests_may_include_anything(self):
        for name in ("src/base/a.test.cpp", "src/base/a.fuzz.cpp", "tests/a.cpp", "bench/a.cpp"):
            self.passes(name, "engine/sequence.hpp", "ops/kernel.hpp", "tests/harness.hpp", "consonant/engine.hpp")

    def test_shipped_code_sees_no_test_code(self):
        self.fails("src/engine/a.cpp", '#include "tests/harness.hpp"\n', "belongs to the tests")

    def test_an_include_in_a_comment_is_none(self):
        self.write("src/base/a.cpp", '// #include "engine/sequence.hpp"\n/*\n#include "engine/sequence.hpp"\n*/\n')
        self.assertEqual(self.faults(), [])


class Forms(Tree):
    def test_a_name_without_its_folder(self):
        self.fails("src/base/a.cpp", '#include "error.hpp"\n', '"error.hpp" is not "folder/file"')
        self.fails("src/base/a.cpp", '#include "../base/error.hpp"\n', "is not")

    def test_a_header_that_is_not_there(self):
        self.fails("src/base/a.cpp", '#include "base/gone.hpp"\n', "does not exist")

    def test_a_made_header_needs_its_source(self):
        self.fails("src/models/a.cpp", '#include "ops/ops.hpp"\n', "does not exist")
        self.write("src/ops/all.def", "")
        self.assertEqual(self.faults(), [])

    def test_our_header_in_angle_brackets(self):
        self.fails("src/base/a.cpp", "#include <base/error.hpp>\n", "the project's own")

    def test_others_headers_in_quotes(self):
        self.fails("src/base/a.cpp", '#include "nlohmann/json.hpp"\n', "angle brackets")
        self.write("src/base/a.cpp", "#include <nlohmann/json.hpp>\n#include <vector>\n")
        self.assertEqual(self.faults(), [])

    def test_a_source_file_is_never_included(self):
        self.write("src/base/b.cpp", "")
        self.fails("src/base/a.cpp", '#include "base/b.cpp"\n', "only headers are included")

    def test_highway_includes_the_file_itself_and_no_other(self):
        self.write("src/ops/silu/silu.cpu.cpp", '#define HWY_TARGET_INCLUDE "ops/silu/silu.cpu.cpp"\n'
                                                "#include <hwy/foreach_target.h>\n")
        self.assertEqual(self.faults(), [])
        self.fails("src/ops/silu/silu.cpu.cpp", '#define HWY_TARGET_INCLUDE "ops/silu/other.cpp"\n', "HWY_TARGET_INCLUDE")

    def test_vendor_headers_have_their_places(self):
        for named in ("cuda_runtime.h", "cublas_v2.h", "hip/hip_runtime.h", "mma.h", "cooperative_groups.h"):
            for name in ("src/device/cuda/a.cpp", "src/ops/silu/silu.cuda.cu", "src/ops/silu/silu.hip.cpp"):
                self.write(name, f"#include <{named}>\n")
            self.assertEqual(self.faults(), [])
            self.fails("src/ops/silu/silu.gpu.cpp", f"#include <{named}>\n", "vendor header")
            (self.root / "src/ops/silu/silu.gpu.cpp").unlink()

    def test_a_folder_that_the_table_lacks(self):
        self.fails("src/utils/a.hpp", "", "include table doesn't know")

    def test_the_environment_is_read_in_cli_only(self):
        read = 'const char* home = std::getenv("HOME");\n'
        self.write("src/cli/a.cpp", read)
        self.write("src/base/b.cpp", '// getenv is for cli\nconst char* s = "getenv";\n')
        self.assertEqual(self.faults(), [])
        for name in ("src/base/a.cpp", "tests/a.cpp", "include/consonant/a.hpp", "src/base/a.test.cpp"):
            self.fails(name, read, "environment", ":2:")
            (self.root / name).unlink()
        self.fails("src/base/a.cpp", "extern char** environ;\n", "environment")

    def test_the_licence_comes_first(self):
        for name in ("src/base/a.cpp", "tools/a.py", "cmake/a.cmake", "tools/a.sh", "src/base/CMakeLists.txt"):
            self.fails(name, "\n", "the line must be the licence", licence="")
            self.write(name, "", licence="#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
            self.assertEqual(self.faults(), [], name)

    def test_text_is_utf8(self):
        (self.root / "src/base/a.cpp").write_bytes(LICENCE.encode() + b"// \xff\n")
        self.assertIn("not UTF-8", "".join(self.faults()))


class Lengths(Tree):
    def test_a_file_has_fewer_than_600_lines(self):
        self.write("src/base/a.cpp", "\n" * 598)
        self.assertEqual(self.faults(), [])
        self.fails("src/base/a.cpp", "\n" * 599, "600 lines")

    def test_a_function_has_fewer_than_80_lines(self):
        self.write("src/base/a.cpp", "void f() {\n" + "g();\n" * 77 + "}\n")
        self.assertEqual(self.faults(), [])
        self.fails("src/base/a.cpp", "void f() {\n" + "g();\n" * 78 + "}\n", "src/base/a.cpp:2: f has 80 lines")

    def test_a_python_function_too(self):
        self.fails("tools/a.py", "def f():\n" + "    g()\n" * 79, "f has 80 lines", licence=LICENCE.replace("//", "#"))

    def test_braces_that_do_not_balance(self):
        self.fails("src/base/a.cpp", "void f() {\n", "can't be measured")
        self.fails("src/base/a.cpp", "}\n", "can't be measured")


class Functions(unittest.TestCase):
    def lengths(self, text):
        return {function.name: function.lines for function in cpp_text.functions(text)}

    def test_scopes_are_no_functions(self):
        text = "namespace a::b {\nstruct alignas(64) S : T<int> {\n  int f() const {\n    return 1;\n  }\n};\n}\nenum class E : int { A };\n"
        self.assertEqual(self.lengths(text), {"f": 3})

    def test_templates_operators_and_trailing_returns(self):
        text = (
            "template <class T, class U = int>\nauto f(T x) -> std::vector<T> {\n}\n"
            "bool operator==(const A& a, const A& b) {\n}\n"
            "A& A::operator=(A&& o) noexcept {\n}\n"
        )
        self.assertEqual(list(self.lengths(text).values()), [3, 2, 2])

    def test_member_initialisers(self):
        text = "A::A(int a)\n    : a_{a}, b_(a), c_{1,\n  2} {\n  g();\n}\nint A::f() {\n}\n"
        self.assertEqual(self.lengths(text), {"A::A": 5, "A::f": 2})

    def test_values_are_no_functions_but_lambdas_are(self):
        text = "const int t[] = {\n1,\n2};\nFoo g{\n3};\nconst auto h = [](int x) {\n  return x;\n};\nint k() { return 1; }\n"
        self.assertEqual(list(self.lengths(text).values()), [3, 1])

    def test_braces_in_strings_comments_and_directives(self):
        text = 'void f() {\n  // }\n  /* } */\n  s = "}"; c = \'}\'; r = R"x(})x"; n = 1\'000;\n#if A\n  {\n#else\n  {\n#endif\n  }\n}\nvoid g() {\n}\n'
        self.assertEqual(self.lengths(text), {"f": 11, "g": 2})

    def test_test_macros_and_access_labels(self):
        text = "TEST(A, b) {\n  x();\n}\nclass C {\n public:\n  void f() {\n  }\n\n private:\n  void g() {\n  }\n};\n"
        self.assertEqual(self.lengths(text), {"TEST": 3, "f": 2, "g": 2})

    def test_default_arguments_with_braces(self):
        self.assertEqual(self.lengths("void f(A a = {}, std::function<int()> g = [] { return 1; }) {\n}\n"), {"f": 2})


class Program(Tree):
    def run_it(self, *arguments):
        command = [sys.executable, str(HERE / "check_deps.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_the_exit_code_tells(self):
        self.assertEqual(self.run_it(str(self.root)).returncode, 0)
        self.write("src/base/a.cpp", '#include "engine/sequence.hpp"\n')
        result = self.run_it(str(self.root))
        self.assertEqual(result.returncode, 1)
        self.assertIn("src/base/a.cpp:2:", result.stdout)

    def test_a_tree_without_files_is_no_success(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(self.run_it(empty).returncode, 1)

    def test_the_table_names_every_folder(self):
        shown = self.run_it("--table").stdout
        for folder in check_deps.FOLDERS:
            self.assertIn(f"\n| {folder}", shown)


if __name__ == "__main__":
    unittest.main()
