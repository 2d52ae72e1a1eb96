"""A table is restored by the commands of docs/aws/runbooks.md, "Getting a table back", and conversations continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.stack import LocalStack
from tests.clients.stack_client import KEYS, Person, Root
from tests.servers.provider import model_settings, serve_model

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_is_restored_under_its_name(tmp_path: Path) -> None:
    """On the emulator, which restores at once and shows neither the gateway's limits nor drift."""
    with (
        serve_model() as model,
        LocalStack(tmp_path, environment={**KEYS, **model_settings(model)}) as stack,
    ):
        root = Root(stack, tmp_path)
        ann = Person(stack.url, stack.token("ann"))
        asked = ann.ask("Hello there.")
        table = stack.outputs["HistoryTable"]
        tables, functions = root.client("dynamodb"), root.client("lambda")

        functions.put_function_concurrency(
            FunctionName=stack.outputs["SweepFunction"], ReservedConcurrentExecutions=0
        )
        restored = f"{table}-found"
        tables.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        tables.restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName=restored, UseLatestRestorableTime=True
        )
        tables.get_waiter("table_exists").wait(TableName=restored)
        backup = tables.create_backup(TableName=restored, BackupName="found")["BackupDetails"]["BackupArn"]
        tables.update_table(TableName=table, DeletionProtectionEnabled=False)
        tables.delete_table(TableName=table)
        tables.get_waiter("table_not_exists").wait(TableName=table)
        assert ann.http.get("/v1/conversations").status_code >= 500
        tables.restore_table_from_backup(TargetTableName=table, BackupArn=backup)
        tables.get_waiter("table_exists").wait(TableName=table)
        functions.delete_function_concurrency(FunctionName=stack.outputs["SweepFunction"])

        again = ann.ask("And again.", asked["conversation_id"])
        assert again["message_id"] == "q2"
        assert again["status"] == "done"
        ann.close()
