"""Pages say what is true: their commands parse, their code compiles, their imports and files exist."""

import ast
import contextlib
import importlib
import re
import shlex
from pathlib import Path

import pytest

from moopt.cli.main import COMMANDS, main
from moopt.cli.methods import ALGOS
from moopt.cli.settings import parse_train

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("experiments/*/*.md")),
]
SETTINGS = sorted(path for path in ROOT.glob("experiments/*/*.yaml") if "algo:" in path.read_text())


def blocks(page, *languages):
    """Code blocks of a page in one of the languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language in languages]


def command_lines(program):
    """Every command of a program that stands in a code block of a page, without its comment."""
    found = []
    for page in PAGES:
        for block in blocks(page, "bash", "sh", "console", ""):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words and Path(words[0]).name.startswith(program):
                    found.append(pytest.param(words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}"[:90]))
    return found


def test_there_is_something_to_check():
    assert len(command_lines("moopt")) >= 8
    assert SETTINGS
    assert any(blocks(page, "python") for page in PAGES)


@pytest.mark.parametrize("words", command_lines("moopt"))
def test_commands_of_the_pages_exist_with_their_flags(words, capsys):
    assert words[1] in COMMANDS or words[1].startswith("-")
    if words[1:2] == ["train"] and "--resume" not in words and not words[2].startswith("-"):
        assert words[2] in ALGOS
        parse_train(words[2:])
    with_help = [words[1], *(w for w in words[2:3] if not w.startswith("-") and words[1] in ("train", "fit")), "--help"]
    with contextlib.suppress(SystemExit):
        main(with_help)
    said = capsys.readouterr().out
    for word in words[2:]:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            assert re.search(rf"(?<![\w-]){flag}(?![\w-])", said), f"{flag} is no flag of moopt {' '.join(with_help)}"


@pytest.mark.parametrize("words", command_lines("make"))
def test_targets_of_the_pages_exist(words):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {w for w in words[1:] if "=" not in w} <= targets


@pytest.mark.parametrize("words", command_lines("python"))
def test_scripts_of_the_pages_exist(words):
    scripts = [w for w in words[1:] if w.endswith(".py")]
    for script in scripts:
        assert (ROOT / script).is_file()
        flags = [w.partition("=")[0] for w in words[words.index(script) + 1 :] if w.startswith("--")]
        source = (ROOT / script).read_text()
        for flag in flags:
            assert f'"{flag}"' in source, f"{script} has no {flag}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_of_the_pages_compiles_and_imports(page):
    for block in blocks(page, "python"):
        source = "\n".join(re.sub(r"^(>>> |\.\.\. )", "", line) for line in block.splitlines())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "moopt":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"


@pytest.mark.parametrize("path", SETTINGS, ids=lambda p: p.name)
def test_settings_files_of_the_experiments_are_valid(path):
    algo, options, _ = parse_train(["--config", str(path)])
    assert algo in ALGOS
    assert options.env


def test_the_changelog_has_a_place_for_what_comes():
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
