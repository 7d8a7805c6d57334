# SPDX-License-Identifier: BSL-1.0
# A recipe for Conan 2: `conan create .` puts Turnstile into the local cache.
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class TurnstileConan(ConanFile):
    name = "turnstile"
    description = "Asynchronous synchronization, flow control and resilience for Boost.Asio"
    license = "BSL-1.0"
    topics = ("asio", "coroutines", "synchronization", "rate-limiter", "circuit-breaker")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True, "boost/*:header_only": True}
    implements = ["auto_shared_fpic"]
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(turnstile\s+VERSION ([\d.]+)", text)[1]

    def requirements(self):
        # Turnstile's headers include those of both.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("fmt/[>=9]", transitive_headers=True)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["TURNSTILE_BUILD_TESTS"] = False
        toolchain.cache_variables["TURNSTILE_BUILD_EXAMPLES"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes its own for each consumer.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "turnstile")
        self.cpp_info.set_property("cmake_target_name", "turnstile::turnstile")
        self.cpp_info.set_property("pkg_config_name", "turnstile")
        self.cpp_info.libs = ["turnstile"]
        self.cpp_info.requires = ["boost::headers", "fmt::fmt"]
        if self.options.shared:
            self.cpp_info.defines = ["TURNSTILE_SHARED"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
