#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The rules of the protocol's model and those of the cores are the same, but for the ones that tests/house/rules.toml argues."""
import ast
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def model_rules(text):
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "RULES":
            return set(ast.literal_eval(node.value))
    raise SystemExit("docs/protocol/model.py has no table RULES")


def core_rules(text):
    return set(re.findall(r"^ +X\((\w+)\)", text, flags=re.M))


def complaints(model, cores, argued):
    model_only, core_only = argued["model_only"], argued["core_only"]
    for name in sorted(model - cores - set(model_only)):
        yield f"{name}: the model has this rule, lib/session/rules.h has not, and tests/house/rules.toml does not say why"
    for name in sorted(cores - model - set(core_only)):
        yield f"{name}: lib/session/rules.h has this rule, the model has not, and tests/house/rules.toml does not say why"
    for name in sorted(set(model_only) - (model - cores)):
        yield f"{name}: tests/house/rules.toml argues that only the model has it, which is not so"
    for name in sorted(set(core_only) - (cores - model)):
        yield f"{name}: tests/house/rules.toml argues that only the cores have it, which is not so"
    for name, reason in sorted({**model_only, **core_only}.items()):
        if not reason.strip():
            yield f"{name}: tests/house/rules.toml gives no reason"


def main():
    model = model_rules((ROOT / "docs/protocol/model.py").read_text(encoding="utf-8"))
    cores = core_rules((ROOT / "lib/session/rules.h").read_text(encoding="utf-8"))
    argued = tomllib.loads((ROOT / "tests/house/rules.toml").read_text(encoding="utf-8"))
    found = list(complaints(model, cores, argued))
    print("\n".join(found) or f"{len(model)} rules of the model, {len(cores)} of the cores, {len(model & cores)} of both.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
