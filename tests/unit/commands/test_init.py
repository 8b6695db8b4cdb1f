"""`lakeload init` writes files, and takes nothing away."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from lakeload.commands import init as init_command
from lakeload.config.model import Finding
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.init.interview import Question, interview
from lakeload.lake.server import Lake
from lakeload_jobs.sources.files.listing import list_files
from tests.inputs import files_of
from tests.unit.init.choices import (
    CATALOGS,
    FLAGS,
    ROLE,
    init,
)

pytestmark = pytest.mark.usefixtures("inspected_here")


def test_init_with_missing_options_names_them_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = init("--bucket", "my-data-lake")

    assert result.exit_code == 2
    assert "`--region`, `--path` are missing" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bucket", "Not_A_Bucket"], "`--bucket`: `Not_A_Bucket` is not a bucket name"),
        (["--table-format", "delta"], "`--table-format`: `delta` is not a choice"),
        (["--role-arn", "lake"], "`--role-arn`: `lake` is not the ARN of a role"),
        (["--source", "xml"], "`--source`: `xml` is not a choice"),
        (["--bucket", ""], "`--bucket`: this cannot be empty"),
        (["--table", "a\x1bb"], r"`--table`: `a\x1bb` holds a control character"),
        (["--prefix", "_lakeload/x"], "`--prefix`: `_lakeload/x` cannot be a prefix"),
        (["--bucket", "${NOT_SET_HERE}"], "the environment variable `NOT_SET_HERE` is not set"),
        (["--table", "probe", "--name", "_"], "`--name`: `_` is not a pipeline name"),
        (["--endpoint-url", "http://a:b@h"], "`--endpoint-url`: the URL carries a user name"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_written(
    flags: list[str], message: str, tmp_path: Path
) -> None:
    result = init(str(tmp_path / "new"), *FLAGS, *flags)

    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_reference_to_the_environment_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_STAGE", "test")

    result = init(str(tmp_path), *FLAGS, "--prefix", "landing/${LAKE_STAGE}")

    assert result.exit_code == 0
    assert 'prefix: "landing/${LAKE_STAGE}"' in (tmp_path / "destination.yml").read_text()


def test_init_secrets_file_is_private_and_ignored_by_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = init(*FLAGS, "--role-arn", ROLE)

    assert result.exit_code == 0
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert (tmp_path / ".gitignore").read_text() == ".env\n"
    assert result.stdout.splitlines() == [
        "wrote destination.yml",
        "wrote pipeline.yml",
        "wrote .env",
        "wrote .gitignore",
        "",
        "Fill in .env:",
        "  LAKELOAD_EXTERNAL_ID: The ExternalId that the role's trust policy requires.",
        "",
        "Next:",
        "  set -a; . ./.env; set +a",
        "  lakeload policy destination.yml           # the IAM policies that this needs",
        "  lakeload test-connection destination.yml  # check bucket, role and permissions",
        "  lakeload plan pipeline.yml                # what sync would load",
    ]


def test_init_without_secrets_writes_no_secrets_file(tmp_path: Path) -> None:
    result = init(str(tmp_path), *FLAGS)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["destination.yml", "pipeline.yml"]
    assert ".env" not in result.stdout


def test_init_with_existing_files_asks_no_question(tmp_path: Path) -> None:
    (tmp_path / "destination.yml").write_text("mine")

    result = init(str(tmp_path))

    assert result.exit_code == 2
    assert "already exists; nothing was written" in " ".join(result.stderr.split())


def test_init_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text("mine")

    result = init(str(tmp_path), *FLAGS, "--role-arn", ROLE)

    assert result.exit_code == 2
    assert "already exists; nothing was written" in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.yml"]
    assert (tmp_path / "pipeline.yml").read_text() == "mine"

    result = init(str(tmp_path), *FLAGS, "--force")

    assert result.exit_code == 0
    assert f"overwrote {tmp_path}/pipeline.yml" in result.stdout
    assert (tmp_path / "pipeline.yml").read_text() != "mine"


def test_init_existing_secrets_file_gets_only_missing_variables(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("export LAKELOAD_CLIENT_ID='mine'\nOTHER=1")
    (tmp_path / ".gitignore").write_text("*.log")
    flags = [f"--{k.replace('_', '-')}={v}" for k, v in CATALOGS["SNOWFLAKE_OPEN_CATALOG"].items()]

    result = init(str(tmp_path), *FLAGS, *flags, "--force")

    assert f"added to {tmp_path}/.env" in result.stdout
    text = (tmp_path / ".env").read_text()
    assert text.startswith("export LAKELOAD_CLIENT_ID='mine'\nOTHER=1\n")
    assert text.count("LAKELOAD_CLIENT_ID=") == 1
    assert "\n# LAKELOAD_CLIENT_SECRET=\n" in text
    assert (tmp_path / ".gitignore").read_text() == "*.log\n.env\n"

    result = init(str(tmp_path), *FLAGS, *flags, "--force")

    assert f"kept {tmp_path}/.env" in result.stdout
    assert (tmp_path / ".env").read_text() == text
    assert (tmp_path / ".gitignore").read_text() == "*.log\n.env\n"


def test_init_secrets_file_readable_by_others_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    (tmp_path / ".env").chmod(0o644)

    result = init(str(tmp_path), *FLAGS, "--role-arn", ROLE)

    assert f"other users can read {tmp_path}/.env" in result.stderr


def test_init_checks_that_git_ignores_the_secrets_file(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.env\n")
    init(str(tmp_path / "lake"), *FLAGS, "--role-arn", ROLE)
    assert not (tmp_path / "lake" / ".gitignore").exists()

    subprocess.run(["git", "-C", str(tmp_path), "add", "-f", "lake/.env"], check=True)
    result = init(str(tmp_path / "lake"), *FLAGS, "--role-arn", ROLE, "--force")
    assert f"git tracks {tmp_path}/lake/.env" in result.stderr


def test_init_dry_run_lists_files_and_writes_nothing(tmp_path: Path) -> None:
    result = init(str(tmp_path / "new"), *FLAGS, "--role-arn", ROLE, "--dry-run")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"would write {tmp_path}/new/{name}"
        for name in ("destination.yml", "pipeline.yml", ".env", ".gitignore")
    ]
    assert not (tmp_path / "new").exists()


def test_init_json_lists_files_variables_and_commands(tmp_path: Path) -> None:
    result = init(str(tmp_path), *FLAGS, "--role-arn", ROLE, "--output", "json")

    document = json.loads(result.stdout)
    assert [Path(item["file"]).name for item in document["files"]] == [
        "destination.yml",
        "pipeline.yml",
        ".env",
        ".gitignore",
    ]
    assert {item["action"] for item in document["files"]} == {"create"}
    assert [item["name"] for item in document["variables"]] == ["LAKELOAD_EXTERNAL_ID"]
    assert len(document["next"]) == 4
    assert document["dry_run"] is False


def test_a_path_given_here_is_found_from_the_documents_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = init("conf/lake", *FLAGS, "--path", "data/orders/", "--source", "csv")

    assert result.exit_code == 0
    [table] = table_specs(load_pipeline(tmp_path / "conf" / "lake" / "pipeline.yml", {}))
    assert os.path.normpath(files_of(table).paths[0]) == str(tmp_path / "data" / "orders")
    assert table.schema == "lake"


def test_a_path_is_found_from_the_folder_that_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")

    result = init("link", *FLAGS, "--path", "data/orders.csv")

    assert result.exit_code == 0
    [table] = table_specs(load_pipeline(tmp_path / "link" / "pipeline.yml", {}))
    assert Path(files_of(table).paths[0]).resolve() == tmp_path / "data" / "orders.csv"


@pytest.mark.parametrize(
    ("given", "found"), [("~/x/*.csv", "/home/ana/x/*.csv"), ("~nobody-here/x.csv", None)]
)
def test_init_tilde_is_the_home_folder(
    given: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ana")

    result = init(str(tmp_path), *FLAGS, "--path", given)

    assert result.exit_code == 0
    [table] = table_specs(load_pipeline(tmp_path / "pipeline.yml", {}))
    assert os.path.normpath(files_of(table).paths[0]) == (found or str(Path.cwd() / given))


def test_init_writes_the_key_only_for_tables_that_have_its_columns(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.csv").write_text("Order ID,amount\n1,5\n")
    (tmp_path / "in" / "stores.csv").write_text("code,city\nx,Bonn\n")
    rest = ("--table-format", "ICEBERG", "--catalog", "GLUE", "--mode", "UPSERT")
    flags = ("--bucket", "my-bucket", "--region", "eu-central-1", "--path", str(tmp_path / "in"))

    result = init(str(tmp_path / "p"), *flags, *rest, "--primary-key", "order_id")
    wrong = init(str(tmp_path / "q"), *flags, *rest, "--primary-key", "orderid, nr")

    assert result.exit_code == 0, result.stderr
    orders, stores = load_pipeline(tmp_path / "p" / "pipeline.yml", {}).model.tables
    assert (orders.mode, orders.primary_key) == ("UPSERT", ("order_id",))
    assert (stores.mode, stores.primary_key) == ("OVERWRITE", ())
    said = " ".join(result.stderr.split())
    assert "stores: no column `order_id`, so it is not loaded with UPSERT" in said
    assert wrong.exit_code == 2
    assert "no table has the columns `orderid`, `nr`" in " ".join(wrong.stderr.split())
    assert not (tmp_path / "q").exists()


def test_init_names_the_value_that_makes_numbers_text(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}.5\n" for n in range(20))
    path = tmp_path / "a.csv"
    path.write_text(f"id,n\n{rows}20,NA\n21,0.12345678901234567890\n")

    result = init(str(tmp_path / "p"), *FLAGS, "--path", str(path), "--output", "json")

    assert result.exit_code == 0, result.stderr
    (warning,) = json.loads(result.stdout)["warnings"]
    assert f"`0.12345678901234567890` in `{path}`, line 23, has more digits" in warning
    assert "`columns.types: {n: double}` rounds it" in warning


def test_a_path_that_names_no_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("a\n1\n", encoding="utf-8")
    place = [*("--bucket", "lake", "--region", "us-east-1", "--name", "shop", "--table", "t")]

    result = init(str(tmp_path / "new"), "--no-input", *place, "--path", f"{tmp_path}/order")

    assert result.exit_code == 2
    assert "did you mean `orders.csv`?" in result.stderr


@pytest.mark.parametrize(
    ("local", "answers", "asked"),
    [
        (True, ["dta/", "data/"], 2),
        (True, ["nothing/", "nothing/", "CSV"], 2),
        (True, ["data/"], 1),
        (False, ["dta/", "data/"], 2),
        (False, ["incoming/x.csv"], 1),
    ],
)
def test_init_asks_again_for_a_path_that_is_probably_a_slip(
    local: bool,
    answers: list[str],
    asked: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "lake.json").write_text('{"port": 18310}')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    left, prompts = iter(answers), []

    def ask(question: Question, _: object, default: str | None, wrong: Finding | None) -> str:
        if question.name not in ("path", "source") or default:
            return default or ""
        prompts.append((question.name, wrong.message if wrong else ""))
        return next(left)

    monkeypatch.setattr(init_command, "_asker", lambda *_: ask)
    result = init("new", *(["--local"] if local else FLAGS[:2]))

    assert result.exit_code == 0, result.stderr
    paths = [said for name, said in prompts if name == "path"]
    assert paths == ["", f"`{answers[0]}` names no file"][:asked]


def test_init_says_that_it_does_not_inspect_objects(tmp_path: Path) -> None:
    result = init(str(tmp_path / "new"), *FLAGS[:4], "--path", "s3://raw/my data/")

    words = " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert "does not inspect objects, so the format of `--path s3://raw/my data/` is not" in words
    assert "give it with `--source`; `lakeload inspect 's3://raw/my data/'` shows it" in words


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--local", "--path", "order.csv"], 2, "`--path order.csv` names no file"),
        (["--local", "--path", "order.csv", "--source", "CSV"], 0, "`order.csv` names no file yet"),
        ([*FLAGS[:4], "--path", "order.csv"], 0, "`order.csv` names no file yet"),
    ],
)
def test_slip_in_the_path_of_local_files_is_told_with_the_nearest_name(
    flags: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "lake.json").write_text('{"port": 18310}')
    (tmp_path / "orders.csv").write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)

    result = init("new", *flags)

    words = " ".join(result.stderr.split())
    assert result.exit_code == code, result.stderr
    assert said in words
    assert "did you mean `orders.csv`?" in words


def test_files_that_the_glob_leaves_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("jan-2024.csv", "feb-2024.csv", "april.csv", "notes.txt"):
        (tmp_path / name).write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)

    some = init("p", *FLAGS[:4], "--path", "*-*.csv")
    all_of_them = init("q", *FLAGS[:4], "--path", "*.csv")

    assert "warning: `*-*.csv` leaves out `april.csv` of the same folder" in some.stderr
    assert "leaves out" not in all_of_them.stderr


def test_tables_are_listed_by_the_names_that_they_have_in_the_lake(tmp_path: Path) -> None:
    (tmp_path / "sensor-log.csv").write_text("id\n1\n")

    result = init(str(tmp_path / "p"), *FLAGS[:4], "--path", str(tmp_path / "sensor-log.csv"))

    assert "1 table: sensor_log" in result.stdout
    pipeline = tmp_path / "p" / "pipeline.yml"
    [table] = table_specs(load_pipeline(pipeline, {}))
    assert (table.source, table.table) == ("sensor-log", "sensor_log")
    # The name is there to be found. It changes nothing of a load: no file is loaded again.
    text = pipeline.read_text()
    name = "    name: sensor_log   # its name in the lake\n"
    assert name in text
    pipeline.write_text(text.replace(name, ""))
    assert table_specs(load_pipeline(pipeline, {})) == (table,)


def test_init_into_the_folder_of_the_files_reads_none_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("anna", "bert"):
        (tmp_path / f"{name}.csv").write_text("id,name\n1,a\n2,b\n")
    flags = [*FLAGS[:4], "--path", "."]

    first = init(*flags)
    again = init(*flags, "--force")

    for result in (first, again):
        assert (result.exit_code, "warning" in result.stderr) == (0, False), result.stderr
    [table] = table_specs(load_pipeline(tmp_path / "pipeline.yml", {}))
    assert sorted(Path(file.path).name for file in list_files(files_of(table))) == [
        "anna.csv",
        "bert.csv",
    ]


def test_tables_are_listed_in_the_lower_case_of_glue(tmp_path: Path) -> None:
    (tmp_path / "Sensor-Log.csv").write_text("id\n1\n")
    flags = [*FLAGS[:4], "--glue", "--path", str(tmp_path / "Sensor-Log.csv")]

    result = init(str(tmp_path / "p"), *flags)

    assert "1 table: sensor_log" in result.stdout
    [table] = table_specs(load_pipeline(tmp_path / "p" / "pipeline.yml", {}))
    assert table.table == "sensor_log"


@pytest.mark.parametrize("table_format", ["PARQUET", "ICEBERG"])
def test_init_for_the_lake_of_this_machine_needs_no_bucket_and_no_variables(
    table_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake's folder"
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(lake))
    flags = ["--local", "--table-format", table_format, "--path", "data/*.csv"]

    without = init(str(tmp_path / "p"), *flags)
    lake.mkdir()
    (lake / "lake.json").write_text('{"port": 18310}')
    result = init(str(tmp_path / "p"), *flags, "--output", "json")

    assert without.exit_code == 4
    assert "make one: `lakeload lake up`" in without.stderr
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["variables"] == []
    assert json.loads(result.stdout)["next"] == [
        "lakeload lake up",
        f"lakeload sync {tmp_path}/p/pipeline.yml",
        "lakeload lake status",
    ]
    assert sorted(file.name for file in (tmp_path / "p").iterdir()) == [
        "destination.yml",
        "pipeline.yml",
    ]
    document = load_pipeline(tmp_path / "p" / "pipeline.yml", {}).destination
    spec = destination_spec(document)
    assert spec == Lake(lake).destination(spec.table_format)
    assert spec.table_format == table_format


@pytest.mark.parametrize(("table_format", "name"), [("PARQUET", "Orders"), ("ICEBERG", "orders")])
def test_names_are_those_that_the_catalog_of_the_local_lake_accepts(
    table_format: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "lake.json").write_text('{"port": 18310}')
    (tmp_path / "Orders.csv").write_text("id,name\n1,a\n")
    flags = ["--local", "--table-format", table_format, "--path", str(tmp_path / "Orders.csv")]

    result = init(str(tmp_path / "Shop"), *flags)

    assert result.exit_code == 0, result.stderr
    [table] = table_specs(load_pipeline(tmp_path / "Shop" / "pipeline.yml", {}))
    assert (table.schema.lower(), table.table) == ("shop", name)


def test_init_for_the_lake_of_this_machine_takes_no_bucket_and_asks_only_for_the_path() -> None:
    result = init("--local", "--bucket", "my-data-lake", "--path", "a.csv")
    asked: list[str] = []

    def ask(question: Question, *_: object) -> str:
        asked.append(question.name)
        return "a.csv"

    answers = interview({"local": "YES", "table_format": "iceberg"}, {"name": "n"}, ask)

    assert result.exit_code == 2
    assert "`--bucket` has no effect with `--local`" in result.stderr
    assert asked == ["path"]
    assert (answers.table_format, answers.bucket, answers.catalog) == ("ICEBERG", "", "")
