"""A database of H2 in a file, which a pipeline reads with a JDBC driver of the user."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from lakeload.machine.java import find_java

USER = "sa"


def h2_source(jar: Path, folder: Path, password: str) -> dict[str, Any]:
    """Make a table `PUBLIC.ORDERS` of two rows below `folder`, and return the source of a pipeline
    whose documents are in another folder beside `drivers`."""
    url = f"jdbc:h2:file:{folder}/shop"
    columns = '"id" int PRIMARY KEY, "note" varchar(9)'
    sql = f"CREATE TABLE orders ({columns}); INSERT INTO orders VALUES (1, 'a'), (2, 'b')"
    java = find_java({}).home / "bin" / "java"
    login = ["-user", USER, "-password", password]
    shell = [str(java), "-cp", str(jar), "org.h2.tools.Shell", "-url", url, *login]
    subprocess.run([*shell, "-sql", sql], check=True)
    (folder / "drivers").mkdir()
    (folder / "drivers" / "h2.jar").symlink_to(jar)
    return {
        "type": "JDBC", "url": url, "jar": "../drivers/h2.jar", "user": USER,
        "password": {"env": "SHOP_PASSWORD"},
    }  # fmt: skip
