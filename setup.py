"""Package metadata: everything is read from settings.ini (standard library only)."""
import os
from configparser import ConfigParser
from pathlib import Path
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CCompilerError, ExecError, PlatformError
try: from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    try: from wheel.bdist_wheel import bdist_wheel  # setuptools before 70.1
    except ImportError: bdist_wheel = None  # and no wheel: pip before 23.1 installs without one

root = Path(__file__).parent
ini = ConfigParser(delimiters=["="], interpolation=None)
ini.read(root / "settings.ini", encoding="utf-8")
cfg = ini["DEFAULT"]


def reqs(key: str) -> list[str]:
    return cfg.get(key, "").split()


class Build(build_py):
    """Every module but the index that nbdev writes for its own tools: a quarter of what a wheel unpacks to, and nothing here reads it."""
    def find_package_modules(self, package, package_dir):
        return [m for m in super().find_package_modules(package, package_dir) if m[1] != "_modidx"]


class Library(build_ext):
    """The compiled engine: a shared library with no Python in it, the same file for every Python; without a compiler one line says that there is none."""
    def get_ext_filename(self, name): return name.replace(".", os.sep) + (".dll" if WINDOWS else ".so")
    def get_export_symbols(self, ext): return ext.export_symbols  # no PyInit_… on Windows
    def build_extension(self, ext):
        try: super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError, OSError) as e:
            self.warn(f"the compiled engine was not built ({str(e).splitlines()[0]}); answers are the same, proofs of trees take longer")
    def copy_extensions_to_source(self):  # of `--inplace`: nothing to copy where nothing was built
        self.extensions = [e for e in self.extensions if Path(self.build_lib, self.get_ext_filename(e.name)).exists()]
        super().copy_extensions_to_source()


class Wheel(bdist_wheel or object):
    """One wheel of a platform for every Python; one for all platforms where nothing was compiled."""
    def get_tag(self):
        built = any(p.suffix in (".so", ".dll") for p in Path(self.bdist_dir or ".").rglob("gradual_cf/search/core.*"))
        return ("py3", "none", super().get_tag()[2] if built else "any")


WINDOWS = os.name == "nt"
core = Extension(
    "gradual_cf.search.core", ["gradual_cf/search/core.c"], libraries=[] if WINDOWS else ["m"], extra_link_args=[] if WINDOWS else ["-s"],
    # No contraction of products and sums: floats must not depend on the processor
    extra_compile_args=["/O2"] if WINDOWS else ["-O3", "-std=c11", "-fvisibility=hidden", "-ffp-contract=off"])
extras = {k.removesuffix("_requirements"): reqs(k) for k in cfg if k.endswith("_requirements")}
readme = root / "README.md"
setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=readme.read_text(encoding="utf-8") if readme.exists() else "",
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url="" if ".invalid" in cfg["git_url"] else cfg["git_url"],  # not published yet
    keywords=cfg["keywords"],
    license="Apache-2.0",
    packages=find_packages(include=[cfg["lib_path"], cfg["lib_path"] + ".*"]),
    package_data={"": ["*.json", "*.html", "py.typed"], "gradual_cf": ["templates/*", "templates/*/*", "locale/*/LC_MESSAGES/*.po"]},
    python_requires=">=" + cfg["min_python"],
    install_requires=reqs("requirements"),
    extras_require=extras,
    entry_points={"console_scripts": reqs("console_scripts")},
    ext_modules=[core],
    cmdclass={"build_py": Build, "build_ext": Library} | ({"bdist_wheel": Wheel} if bdist_wheel else {}),
    zip_safe=False,
    # A path entry instead of an import hook: the folder that holds a clone would else be taken for an empty package of this name
    options={"editable_wheel": {"mode": "compat"}},
)
