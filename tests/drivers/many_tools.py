"""A server with 300 tools, as such servers are made, and tasks for them in the words that a model searches by."""

from __future__ import annotations

from typing import Final

from dualtrack.frozen import freeze
from dualtrack.tool_values import ToolSpec

_SERVICES: Final = {
    "tracker": {"issue": "a bug, task or story", "sprint": "a period of planned work", "board": "columns of work", "comment": "a remark below an issue"},
    "calendar": {"event": "a meeting or an appointment", "attendee": "a guest of an event", "reminder": "a notice before an event", "room": "a bookable meeting room"},
    "crm": {"contact": "a person at a customer", "deal": "a sales opportunity", "company": "a customer's organisation", "activity": "a call or visit"},
    "mail": {"message": "an e-mail in the mailbox", "draft": "an e-mail that is not sent yet", "label": "a mark on e-mails", "filter": "a rule for incoming e-mails"},
    "drive": {"file": "a document in the storage", "folder": "a directory of files", "share_link": "access for others by an address", "version": "an earlier state of a file"},
    "billing": {"invoice": "a bill to a customer", "payment": "money received", "refund": "money given back", "subscription": "a recurring plan of a customer"},
    "people": {"employee": "a member of staff", "leave_request": "holiday or absence", "payslip": "a month's salary statement", "job_opening": "a vacancy"},
    "monitor": {"alert": "a rule that notifies on a threshold", "dashboard": "a page of charts", "metric": "a time series", "incident": "an outage and its timeline"},
    "cluster": {"pod": "a running container", "deployment": "replicas of an application", "namespace": "a part of the cluster", "secret": "a confidential value"},
    "dns": {"zone": "a domain", "record": "an entry such as A, CNAME or MX", "certificate": "a TLS certificate", "redirect": "a forward from one address to another"},
    "shop": {"product": "an article for sale", "order": "a purchase by a customer", "cart": "a basket before checkout", "coupon": "a discount code"},
    "wiki": {"page": "an article of the wiki", "space": "a collection of pages", "attachment": "a file on a page", "template": "a pattern for new pages"},
    "chat": {"channel": "a room for conversations", "direct_message": "a private note to somebody", "reaction": "an emoji on a message", "user_group": "people who are mentioned together"},
    "ci": {"pipeline": "a chain of builds and tests", "job": "a step of a pipeline", "artifact": "an output of a build", "runner": "a machine that builds"},
    "database": {"table": "rows and columns", "query": "a statement in SQL", "backup": "a copy for emergencies", "index": "a structure for fast look-ups"},
}  # fmt: skip
_VERBS: Final = {
    "create": "Creates a new {thing} ({what}) in the {service}. Returns its id.",
    "get": "Gets one {thing} ({what}) of the {service} by its id, with all details.",
    "list": "Lists {thing}s ({what}) of the {service}, page by page, optionally filtered.",
    "update": "Updates fields of an existing {thing} ({what}) in the {service}.",
    "delete": "Deletes a {thing} ({what}) from the {service} for good.",
}


def _schema(verb: str, thing: str) -> dict[str, object]:
    own = {f"{thing}_id": {"type": "string", "description": f"The {thing}'s id"}}
    fields = {"name": {"type": "string"}, "properties": {"type": "object", "description": "Fields to set"}}
    paging = {"limit": {"type": "integer", "maximum": 100}, "cursor": {"type": "string"}}
    properties = {"create": fields, "list": paging, "update": own | fields}.get(verb, own)
    return {"type": "object", "properties": properties}


TOOLS: Final = tuple(
    ToolSpec(
        f"{service}_{verb}_{thing}",
        text.format(thing=thing.replace("_", " "), what=what, service=service),
        freeze(_schema(verb, thing)),
        "mcp",
        server="office",
        remote_name=f"{service}_{verb}_{thing}",
        effect="reads" if verb in ("get", "list") else "changes",
    )
    for service, things in _SERVICES.items()
    for thing, what in things.items()
    for verb, text in _VERBS.items()
)

TASKS: Final = (
    ("open a bug in the tracker", "tracker_create_issue"),
    ("add a comment to an issue", "tracker_create_comment"),
    ("list the sprints", "tracker_list_sprint"),
    ("book a meeting in the calendar", "calendar_create_event"),
    ("cancel a meeting, delete calendar event", "calendar_delete_event"),
    ("invite a guest to an event", "calendar_create_attendee"),
    ("find a free meeting room", "calendar_list_room"),
    ("move an appointment, change calendar event", "calendar_update_event"),
    ("create a contact for a person at a customer", "crm_create_contact"),
    ("update the stage of a sales opportunity", "crm_update_deal"),
    ("log a call or visit with a customer", "crm_create_activity"),
    ("search e-mails in the mailbox", "mail_list_message"),
    ("write a draft e-mail", "mail_create_draft"),
    ("set a rule for incoming e-mails", "mail_create_filter"),
    ("delete a file from storage", "drive_delete_file"),
    ("share a document with others by a link", "drive_create_share_link"),
    ("list earlier versions of a file", "drive_list_version"),
    ("give money back to a customer, refund", "billing_create_refund"),
    ("get an invoice by id", "billing_get_invoice"),
    ("cancel a subscription", "billing_delete_subscription"),
    ("list payments received", "billing_list_payment"),
    ("request holiday leave", "people_create_leave_request"),
    ("show last month's payslip", "people_get_payslip"),
    ("publish a vacancy", "people_create_job_opening"),
    ("list employees", "people_list_employee"),
    ("create an alert that notifies on a threshold", "monitor_create_alert"),
    ("timeline of an outage incident", "monitor_get_incident"),
    ("read a metric time series", "monitor_get_metric"),
    ("scale a deployment: update replicas", "cluster_update_deployment"),
    ("list running containers / pods", "cluster_list_pod"),
    ("store a confidential value as a secret", "cluster_create_secret"),
    ("add a CNAME DNS record", "dns_create_record"),
    ("renew TLS certificate", "dns_update_certificate"),
    ("forward one address to another", "dns_create_redirect"),
    ("look up a purchase order of a customer", "shop_get_order"),
    ("create a discount code", "shop_create_coupon"),
    ("change the price of a product", "shop_update_product"),
    ("write a new wiki page", "wiki_create_page"),
    ("upload a file to a wiki page as attachment", "wiki_create_attachment"),
    ("post a private note to somebody", "chat_create_direct_message"),
    ("react to a message with an emoji", "chat_create_reaction"),
    ("create a chat channel", "chat_create_channel"),
    ("start a pipeline of builds and tests", "ci_create_pipeline"),
    ("download the output of a build (artifact)", "ci_get_artifact"),
    ("list build machines", "ci_list_runner"),
    ("run a SQL statement", "database_create_query"),
    ("make a database backup", "database_create_backup"),
    ("drop an index", "database_delete_index"),
    ("list tables of the database", "database_list_table"),
    ("remove a member of staff", "people_delete_employee"),
)
