# SPDX-License-Identifier: Apache-2.0
"""The command blocks of README.md and its like, and a folder in which they run as they are written."""
import os
import re

from cluster import BUILD

SOURCE = os.environ["SUMAC_SOURCE"]


def blocks(document="README.md", language="sh"):
    """The texts of a document's fenced blocks of a language, in order."""
    with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
        return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", file.read())


def block(has, document="README.md"):
    """The lines of the one block of commands that has this text."""
    (text,) = [text for text in blocks(document) if has in text]
    return text.splitlines()


def clone_into(folder):
    """What a fresh clone has, with this build's programs where its own would be."""
    for name in os.listdir(SOURCE):
        if name not in (".git", "build"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "build"))
    os.symlink(BUILD, os.path.join(folder, "build", "release"))
