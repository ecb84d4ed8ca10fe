"""Package metadata: everything is read from settings.ini (standard library only)."""
from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

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
    cmdclass={"build_py": Build},
    zip_safe=False,
    # A path entry instead of an import hook: the folder that holds a clone would else be taken for an empty package of this name
    options={"editable_wheel": {"mode": "compat"}},
)
