#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that the C++ shown in the documentation is code that is compiled and run.

Every ```cpp block in README.md and doc/*.md must occur, line by line and apart from a common
indentation, in a marked region of a source file in example/ or test/doc/:

    // [name]
    ...
    // [/name]

Regions may nest; the marker lines themselves do not count. And every test that doc/testing.md
names must be there. Exits with 1 and says what is missing if a block or a test is found nowhere,
or a marker has no partner.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\S*)")
MARKER = re.compile(r"^\s*// \[(/?)([a-z0-9-]+)\]\s*$")
TEST_NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){3,})`")
CPP = {"cpp", "c++", "cxx", "cc", "hpp"}


def dedent(lines):
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)).split("\n")


def blocks(path):
    """Yields (line number, language, lines) of each fenced block."""
    fence, language, start, lines = None, "", 0, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, language, start, lines = match[1], match[2].lower(), number, []
        elif fence is not None and match and match[1].startswith(fence) and not match[2]:
            yield start, language, lines
            fence = None
        elif fence is not None:
            lines.append(line)
    if fence is not None:
        raise SystemExit(f"{path.relative_to(ROOT)}:{start}: this block is not closed")


def regions(path):
    """Yields the lines of each marked region."""
    where = path.relative_to(ROOT)
    open_regions = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = MARKER.match(line)
        if not match:
            for lines in open_regions.values():
                lines.append(line)
        elif not match[1]:
            if match[2] in open_regions:
                raise SystemExit(f"{where}:{number}: [{match[2]}] is open already")
            open_regions[match[2]] = []
        else:
            if match[2] not in open_regions:
                raise SystemExit(f"{where}:{number}: [/{match[2]}] closes nothing")
            yield open_regions.pop(match[2])
    for name in open_regions:
        raise SystemExit(f"{where}: [{name}] is not closed")


def occurs(block, region):
    starts = range(len(region) - len(block) + 1)
    return any(dedent(region[i : i + len(block)]) == block for i in starts)


def missing_tests():
    """Says which of the tests that doc/testing.md names do not exist."""
    sources = [*(ROOT / "test").glob("**/*.[ch]pp"), *(ROOT / "test/guard").glob("limits.*")]
    known = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    page = ROOT / "doc/testing.md"
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        for name in TEST_NAME.findall(line):
            if name not in known:
                yield f"{page.relative_to(ROOT)}:{number}: there is no test {name}"


def main():
    sources = sorted(p for d in ("example", "test/doc") for p in (ROOT / d).glob("**/*.[ch]pp"))
    known = [region for path in sources for region in regions(path)]

    checked, missing = 0, []
    for page in [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]:
        for number, language, lines in blocks(page):
            if language not in CPP:
                continue
            checked += 1
            block = dedent(lines)
            if not any(occurs(block, region) for region in known):
                missing.append(f"{page.relative_to(ROOT)}:{number}: {block[0].strip()}")

    gone = list(missing_tests())
    for line in missing + gone:
        print(line, file=sys.stderr)
    if missing:
        print(
            f"{len(missing)} of {checked} C++ blocks are in no marked region of example/ or "
            "test/doc/ (compared line by line, apart from indentation).",
            file=sys.stderr,
        )
    if missing or gone:
        return 1
    print(f"{checked} C++ blocks, all of them compiled and run in example/ or test/doc/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
