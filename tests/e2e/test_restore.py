"""Tables and objects of one moment are restored by the commands of docs/aws/runbooks.md, "Going back to a moment", and
conversations continue."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.questions import Person as Operator
from dualtrack_stack.cli.aws.restore import run_restore
from dualtrack_stack.local.aws import REGION
from dualtrack_stack.local.stack import LocalStack

from tests.clients.stack_client import KEYS, Person, Root
from tests.drivers.images import png
from tests.servers.provider import model_settings, serve_model

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TABLES = ("HistoryTable", "ChatsTable", "CreditsTable")


def test_tables_and_objects_go_back_to_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulator, which restores at once, and a table to its latest state: so each is restored beside its table
    at the moment, and takes its place later. It shows neither the gateway's limits nor drift.
    """
    with (
        serve_model() as model,
        LocalStack(tmp_path, environment={**KEYS, **model_settings(model)}) as stack,
    ):
        root = Root(stack, tmp_path)
        for name, value in stack.aws.credentials.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", stack.aws.endpoint_url)
        bucket = stack.outputs["BodiesBucket"]
        # a stage that keeps data has both from its template
        root.client("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        ann = Person(stack.url, stack.token("ann"))
        asked = _ask_with_picture(ann)
        kept = _objects(root, bucket)
        own = {key for key in kept if asked["conversation_id"] in key}
        assert own

        moment = datetime.now(UTC)
        for table in TABLES:
            _restore_beside(root, stack.outputs[table])
        _let_functions_run(root, 0)
        assert ann.http.delete(f"/v1/conversations/{asked['conversation_id']}").status_code == 204
        assert not _objects(root, bucket).keys() & own
        later = _ask_with_picture(ann)
        assert _objects(root, bucket).keys() - kept.keys()

        for table in TABLES:
            _take_place(root, stack.outputs[table])
        run_restore(AwsAccount(REGION), "local", moment, Operator(yes=True))
        _let_functions_run(root, None)
        assert _objects(root, bucket) == kept
        assert ann.http.get(f"/v1/conversations/{later['conversation_id']}").status_code == 404
        again = ann.ask("And again.", asked["conversation_id"])
        assert again["message_id"] == "q2"
        assert again["status"] == "done"
        ann.close()


def _ask_with_picture(ann: Person) -> dict[str, Any]:
    """400 KB that cannot be compressed: too large for an item, so it is in the bucket."""
    data = base64.b64encode(png(os.urandom(400_000))).decode()
    body = {"message": "Hello there.", "attachments": [{"media_type": "image/png", "data": data}]}
    response = ann.http.post("/v1/chats", json=body)
    assert response.status_code == 202, response.text
    return ann.finish(response.json()["chat_id"])


def _objects(root: Root, bucket: str) -> dict[str, str]:
    listed = root.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    return {entry["Key"]: entry["ETag"] for entry in listed}


def _let_functions_run(root: Root, limit: int | None) -> None:
    functions, sweep = root.client("lambda"), root.stack.outputs["SweepFunction"]
    if limit is None:
        functions.delete_function_concurrency(FunctionName=sweep)
    else:
        functions.put_function_concurrency(FunctionName=sweep, ReservedConcurrentExecutions=limit)


def _restore_beside(root: Root, table: str) -> None:
    tables = root.client("dynamodb")
    tables.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    tables.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=f"{table}-found", UseLatestRestorableTime=True
    )
    tables.get_waiter("table_exists").wait(TableName=f"{table}-found")


def _take_place(root: Root, table: str) -> None:
    tables = root.client("dynamodb")
    created = tables.create_backup(TableName=f"{table}-found", BackupName="found")
    tables.update_table(TableName=table, DeletionProtectionEnabled=False)
    tables.delete_table(TableName=table)
    tables.get_waiter("table_not_exists").wait(TableName=table)
    tables.restore_table_from_backup(TargetTableName=table, BackupArn=created["BackupDetails"]["BackupArn"])
    tables.get_waiter("table_exists").wait(TableName=table)
