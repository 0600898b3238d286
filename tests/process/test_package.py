# SPDX-License-Identifier: Apache-2.0
"""libsumac as others use it: installed into an empty folder, found by CMake and pkg-config, shared and static."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cluster import BUILD

CMAKE_STATIC = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(sumac 0.1 REQUIRED)
add_executable(first first.c)
target_link_libraries(first PRIVATE sumac::static)
"""

# Its own targets have the names of modules and examples, and it is written in C++.
CMAKE_PARENT = """cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
include(FetchContent)
add_library(base INTERFACE)
add_library(first INTERFACE)
FetchContent_Declare(sumac SOURCE_DIR {source})
FetchContent_MakeAvailable(sumac)
add_executable(shared user.cpp)
target_link_libraries(shared PRIVATE sumac::sumac)
add_executable(static user.cpp)
target_link_libraries(static PRIVATE sumac::static)
foreach(changed CMAKE_BUILD_TYPE CMAKE_C_STANDARD CMAKE_C_VISIBILITY_PRESET CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_POSITION_INDEPENDENT_CODE)
  if(NOT "${{${{changed}}}}" STREQUAL "")
    message(FATAL_ERROR "${{changed}} is now ${{${{changed}}}}")
  endif()
endforeach()
install(TARGETS shared)
"""
PARENT_USER = """#include <cstdio>
#include <sumac/sumac.h>
int main() { std::puts(sumac_version()); }
"""


def done(*command, **options):
    finished = subprocess.run(command, capture_output=True, text=True, **{"timeout": 240, **options})
    if finished.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exited {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "usr")
        done("cmake", "--install", BUILD, "--prefix", cls.prefix)
        (cls.pc,) = [path for path, _, files in os.walk(cls.prefix) if "sumac.pc" in files]
        cls.libraries = os.path.dirname(cls.pc)
        cls.examples = os.path.join(cls.prefix, "share/sumac/examples")
        cls.outside = {**os.environ, "PKG_CONFIG_PATH": cls.pc, "LD_LIBRARY_PATH": cls.libraries,
                       "XDG_RUNTIME_DIR": cls.folder.name}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_with_cmake(self, source, name):
        build = os.path.join(self.folder.name, name)
        done("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        done("cmake", "--build", build)
        return build

    def assert_first_runs(self, program):
        sumac = os.path.join(self.prefix, "bin/sumac")
        output = done(sumac, "run", "--ps", "2", "--", program, env=self.outside, stdin=subprocess.DEVNULL)
        self.assertIn("worker 0 | w is 1 2 3 4", output)

    def flags(self, *options):
        return done("pkg-config", *options, "sumac", env={**self.outside, "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}).split()

    def compile(self, name, *flags):
        program = os.path.join(self.folder.name, name)
        done("cc", os.path.join(self.examples, "first.c"), "-o", program, *flags)
        return program

    def test_the_examples_build_out_of_tree_and_learn(self):
        build = self.build_with_cmake(self.examples, "examples")
        self.assert_first_runs(os.path.join(build, "first"))
        sumac = os.path.join(self.prefix, "bin/sumac")
        output = done(sumac, "run", "--ps", "2", "--workers", "2", "--", os.path.join(build, "digits"), env=self.outside,
                      stdin=subprocess.DEVNULL)
        self.assertIn("held-back rows right", output)
        output = done(sumac, "run", "--ps", "2", "--workers", "2", "--replicas", "3", "--", os.path.join(build, "line"),
                      env=self.outside, stdin=subprocess.DEVNULL)
        self.assertEqual(output.count("| y = 3.00 x + 2.00\n"), 2, output)
        # With so many a gradient is older than a learning rate that is not shared among them allows.
        output = done(sumac, "run", "--ps", "2", "--workers", "20", "--", os.path.join(build, "line"), env=self.outside,
                      stdin=subprocess.DEVNULL)
        self.assertEqual(output.count("| y = 3.00 x + 2.00\n"), 20, output)

    def test_the_documents_that_a_help_names_are_installed(self):
        sumac = os.path.join(self.prefix, "bin/sumac")
        commands = re.findall(r"(?m)^  (\w+) ", done(sumac, "--help").split("Examples:")[0])
        named = {path for command in commands for path in re.findall(r"docs/(\w+\.md)", done(sumac, command, "--help"))}
        self.assertIn("EXPRESSIONS.md", named)
        self.assertEqual(named - set(os.listdir(os.path.join(self.prefix, "share/doc/sumac"))), set())
        self.assertIn("lion.txt", os.listdir(self.examples))

    def test_cmake_links_the_static_library(self):
        source = os.path.join(self.folder.name, "static_source")
        os.mkdir(source)
        shutil.copy(os.path.join(self.examples, "first.c"), source)
        with open(os.path.join(source, "CMakeLists.txt"), "w") as lists:
            lists.write(CMAKE_STATIC)
        program = os.path.join(self.build_with_cmake(source, "static"), "first")
        self.assertNotIn("libsumac", done("ldd", program))
        self.assert_first_runs(program)

    def build_parent(self, name, *options):
        """Another project of which Sumac is a part, and whose two programs run: its source and build folders."""
        source, build = (os.path.join(self.folder.name, name + part) for part in ("", "_build"))
        os.mkdir(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w") as lists:
            lists.write(CMAKE_PARENT.format(source=os.environ["SUMAC_SOURCE"]))
        with open(os.path.join(source, "user.cpp"), "w") as user:
            user.write(PARENT_USER)
        done("cmake", "-G", "Ninja", "-S", source, "-B", build, "-D", "SUMAC_CUDA=OFF", *options)
        done("cmake", "--build", build, timeout=900)
        for program in ("shared", "static"):
            self.assertEqual(done(os.path.join(build, program)).strip(), self.flags("--modversion")[0])
        return source, build

    def test_another_project_links_a_sumac_with_sanitizers(self):
        self.build_parent("sanitized", "-D", "SUMAC_SANITIZE=address,undefined", "-D", "CMAKE_C_FLAGS_RELEASE=-O0")

    def test_another_project_builds_sumac_as_a_part_of_itself(self):
        source, build = self.build_parent("parent")
        done("cmake", "--install", build, "--prefix", os.path.join(source, "usr"))
        self.assertEqual([files for _, _, files in os.walk(os.path.join(source, "usr")) if files], [["shared"]])
        self.assertIn("No tests were found", subprocess.run(["ctest", "--test-dir", build], capture_output=True, text=True).stderr)
        self.assertFalse(os.path.exists(os.path.join(build, "_deps/sumac-build/sumac")), "the program is built where nobody asks for it")

    def test_pkg_config_links_the_shared_library(self):
        program = self.compile("shared_first", *self.flags("--cflags", "--libs"))
        self.assertIn("libsumac.so", done("ldd", program, env=self.outside))
        self.assert_first_runs(program)

    def test_the_soname_changes_with_the_interface(self):
        """A program built with one version never loads another one whose structs may differ."""
        major, minor, _ = self.flags("--modversion")[0].split(".")
        interface = f"0.{minor}" if major == "0" else major
        headers = done("readelf", "--dynamic", os.path.join(self.libraries, "libsumac.so"))
        self.assertIn(f"soname: [libsumac.so.{interface}]", headers)

    def test_a_program_finds_the_library_of_another_prefix_as_the_guide_says(self):
        rpath = f"-Wl,-rpath,{self.flags('--variable=libdir')[0]}"
        program = self.compile("rpath_first", *self.flags("--cflags", "--libs"), rpath)
        without = {name: value for name, value in self.outside.items() if name != "LD_LIBRARY_PATH"}
        self.assertIn(f"{self.prefix}/", done("ldd", program, env=without))
        with open(os.path.join(os.environ["SUMAC_SOURCE"], "docs", "guides", "install.md"), encoding="utf-8") as page:
            self.assertIn("-Wl,-rpath,$(pkg-config --variable=libdir sumac)", page.read())

    def test_pkg_config_links_the_static_library(self):
        libraries = [flag.replace("-lsumac", "-l:libsumac.a") for flag in self.flags("--static", "--libs")]
        program = self.compile("static_first", *self.flags("--cflags"), *libraries)
        self.assertNotIn("libsumac", done("ldd", program))
        self.assert_first_runs(program)

    def symbols(self, *arguments):
        lines = done("nm", "--defined-only", "--format=posix", *arguments).splitlines()
        names = {line.split()[0] for line in lines if len(line.split()) >= 2 and not line.endswith(":")}
        self.assertIn("sumac_client_push", names)
        self.assertIn("sumac_worker_step", names)
        return names

    def test_the_shared_library_shows_public_symbols_only(self):
        names = self.symbols("--dynamic", os.path.join(self.libraries, "libsumac.so"))
        self.assertEqual([name for name in names if not name.startswith("sumac_") or name.startswith("sumac__")], [])

    def test_the_static_librarys_global_symbols_are_public(self):
        names = self.symbols("--extern-only", os.path.join(self.libraries, "libsumac.a"))
        self.assertEqual([name for name in names if not name.startswith("sumac_") or name.startswith("sumac__")], [])

    def test_the_licence_comes_along(self):
        """Apache-2.0, 4 (a) and (d): a copy of it, and the notices."""
        for name in ("LICENSE", "NOTICE"):
            with open(os.path.join(os.environ["SUMAC_SOURCE"], name), "rb") as source, \
                    open(os.path.join(self.prefix, "share/doc/sumac", name), "rb") as installed:
                self.assertEqual(installed.read(), source.read())

    def test_only_public_headers_are_installed(self):
        headers = sorted(os.path.relpath(os.path.join(path, name), os.path.join(self.prefix, "include"))
                         for path, _, names in os.walk(os.path.join(self.prefix, "include")) for name in names)
        self.assertEqual(headers, [f"sumac/{name}.h" for name in ("buffer", "client", "cluster", "collective", "device", "plugin", "reduce", "replica", "status", "strategy", "sumac", "tensor", "value", "variable", "worker")])

    def test_each_public_header_stands_alone(self):
        for name in ("buffer", "client", "cluster", "device", "plugin", "status", "strategy", "tensor", "value", "worker"):
            done("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c",
                 f"-I{self.prefix}/include", os.path.join(self.prefix, f"include/sumac/{name}.h"))


if __name__ == "__main__":
    unittest.main()
