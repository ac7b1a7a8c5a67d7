"""What Schemathesis cannot know of this API: its media types, its rules beyond any schema, and who may do what."""

import itertools
import json
import os
import re
import tomllib
import unicodedata
import zlib
from pathlib import Path

import requests
import schemathesis
import yaml
from schemathesis.core.failures import Failure
from schemathesis.core.media_types import YAML_MEDIA_TYPES
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

ROLE = os.environ.get("FUZZ_ROLE", "writer")
OWN_TOKEN = os.environ.get("FUZZ_OWN_TOKEN", "").split()
URL = os.environ.get("FUZZ_URL")
RESET_TOKEN = os.environ.get("FUZZ_RESET_TOKEN")
CALLS = {}
NDJSON = "application/x-ndjson"
COUNTER = itertools.count()
# What any key may be: a backslash only before a dot, and no name that JavaScript has a use for.
ANY_KEY = {
    "pattern": r"^(?:[^\\\u0000\u007f-\u0084\u0086-\u009f\ufffe\uffff]|\\\.)*$",
    "not": {"enum": ["__proto__", "constructor", "prototype"]},
}
DICTIONARIES = tomllib.loads(Path(__file__).with_name("schemathesis.toml").read_text())["dictionaries"]


@schemathesis.deserializer(NDJSON)
def lines(ctx, response):
    return [json.loads(line) for line in response.content.decode().split("\n") if line]


@schemathesis.deserializer(*YAML_MEDIA_TYPES)
def documents(ctx, response):
    """A stream of several documents is a list; Schemathesis' own reader stops at the second one."""
    found = list(yaml.safe_load_all(response.content.decode()))
    return found[0] if len(found) == 1 else found


# Requests ------------------------------------------------------------------------------------------------------------


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """The description leaves room for fields to come; a test wants to know of every field there is."""
    for name, schema in raw_schema["components"]["schemas"].items():
        if name.endswith("_to_merge"):
            take_nulls(schema)
    close(raw_schema["components"]["schemas"])
    for item in raw_schema["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict):
                close(operation.get("responses"))


def take_nulls(schema):
    """A merge patch may remove what was never there. No client needs it, and so the description is silent about it."""
    for child in schema.get("properties", {}).values():
        if "object" in child.get("type", []):
            take_nulls(child)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        if "object" in others.get("type", []):
            take_nulls(others)
        schema["patternProperties"] = {schema["propertyNames"].get("pattern", ""): others}
    schema["propertyNames"] = ANY_KEY
    schema["additionalProperties"] = {"type": "null"}


def close(schema):
    if isinstance(schema, list):
        for item in schema:
            close(item)
    elif isinstance(schema, dict):
        if "type" in schema and isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)
        for key, item in schema.items():
            if key not in ("if", "then", "allOf", "example", "default", "enum", "const"):
                close(item)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Whatever a request tries, the rest of it is such that it gets there."""
    request = json.dumps([case.path_parameters, case.query, case.body], default=lambda value: type(value).__name__)
    chance = zlib.crc32(request.encode())
    # A revision that is still to come is waited for, and nobody here makes it.
    if re.fullmatch(r"[1-9]\d{0,14}", str(case.query.get("min_revision", ""))):
        case.query["min_revision"] = 1
    if case.meta is not None:
        phase = case.meta.phase.name
        if phase == TestPhase.COVERAGE:
            vary(case, chance)
        # What is only a preview is not gone, nor there.
        if phase == TestPhase.STATEFUL:
            case.query.pop("dry_run", None)
        else:
            start_over(case.operation.label)
        settle(case, chance)
    answer = case.operation.definition.raw.get("responses", {}).get("200", {})
    if NDJSON in answer.get("content", {}) and chance % 2:
        case.headers["Accept"] = NDJSON


def start_over(label):
    """What one operation deletes, the others would look for in vain: now and then all is as it was in the beginning."""
    calls = CALLS[label] = CALLS.get(label, 0) + 1
    if RESET_TOKEN and calls % 50 == 1:
        headers = {"Authorization": f"Bearer {RESET_TOKEN}"}
        # A cluster that was made with protection would stay.
        open_up = {"op": "patch", "type": "clusters", "selector": "id", "patch": {"deletion_protection": False}}
        for path, body in [
            ("/batch", {"operations": [open_up], "allow_empty": True}),
            ("/rollback", {"to_revision": 1, "confirm": ["removals"]}),
        ]:
            answer = requests.post(f"{URL}{path}", json={**body, "impact_limit": 0}, headers=headers, timeout=20)
            if answer.status_code != 200:
                raise RuntimeError(f"the way back is closed: {answer.status_code} {answer.text}")


def is_valid(case, location):
    return case.meta is None or not case.meta.is_negative_at(location)


def vary(case, chance):
    """Where Schemathesis goes through all values of one thing, it takes the same of everything else."""
    if is_valid(case, ParameterLocation.PATH):
        for name in case.path_parameters:
            case.path_parameters[name] = known(kind_of(name, case.operation.path), chance) or case.path_parameters[name]
    if is_valid(case, ParameterLocation.QUERY):
        for name in seldom(chance):
            case.query.pop(name, None)
    if is_valid(case, ParameterLocation.HEADER) and "If-Match" in case.headers:
        case.headers["If-Match"] = "*"
    if is_valid(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        for name in seldom(chance):
            case.body.pop(name, None)
        for operation in case.body.get("operations", []):
            vary_operation(operation, chance)


def seldom(chance):
    """Of most writes, all that would keep them from being done."""
    return ["plan", "dry_run"] if chance % 4 else ["plan"] if chance % 8 else []


def vary_operation(operation, chance):
    kind = operation.get("type")
    for holder, name, its_kind in [
        (operation, "id", kind),
        (operation.get("ref", {}), "id", kind),
        (operation.get("document", {}), "id", kind if operation["op"] == "replace" else None),
        (operation, "component", "platform_components"),
        (operation, "selector", "selectors"),
    ]:
        if name in holder:
            holder[name] = known(its_kind, chance) or holder[name]
    if operation.get("clusters"):
        operation["clusters"] = [known("clusters", chance) or "nobody"]


def known(kind, chance):
    """One that is there, four times of five."""
    values = DICTIONARIES.get(kind, {}).get("values")
    return values[chance % len(values)] if values and chance % 5 else None


def kind_of(parameter, path):
    """What an id in a path is of: the part before it says so, but for a few."""
    before = path.split("{%s}" % parameter)[0].rstrip("/").split("/")[-1]
    return {"dns": "dns", "revision": "revisions"}.get(parameter, "platform_components" if before == "patches" else before)


def settle(case, chance):
    """What must hold between the parts of a request, and between requests."""
    if is_valid(case, ParameterLocation.HEADER):
        # A key is for one request.
        if "Idempotency-Key" in case.headers:
            case.headers["Idempotency-Key"] = f"fuzz-{next(COUNTER)}"
        if "If-Match" in case.headers and "If-None-Match" in case.headers:
            del case.headers["If-Match" if chance % 2 else "If-None-Match"]
    # Who revokes the own token learns nothing more.
    if case.path_parameters.get("id") in OWN_TOKEN:
        case.path_parameters["id"] = "nobody"
    if not is_valid(case, ParameterLocation.BODY) or not isinstance(case.body, dict):
        return
    # A body may name its document only as its path does.
    if isinstance(case.body.get("id"), str) and "id" in case.path_parameters:
        case.body["id"] = case.path_parameters["id"]
    # Names that come from a dictionary come twice where they must not.
    for holder in [case.body, *case.body.get("operations", [])]:
        for name in ("ids", "clusters"):
            if isinstance(holder.get(name), list):
                holder[name] = list(dict.fromkeys(holder[name]))


# Answers -------------------------------------------------------------------------------------------------------------

# Why a request that fits its schema may be refused: what the fleet holds, or what two parts of a request make together.
# A refusal counts as right only when each of its details is one of these.
RULES = [
    r"^must be \".*\", as in the path, or be left out$",
    r"^must be \* on a write, without If-Match beside it$",
    # What a document names must be there, once, and not lead back to it.
    r"^names an unknown ",
    r"^names .* twice$",
    r"^makes a cycle: ",
    r"^is a duplicate: .* is assigned already$",
    r"^patches a .* that is not assigned to the cluster: ",
    r"^assigns .*, which the same write deletes: ",
    # What a request chooses must be there, unless it says that it need not be.
    r"^matches (no cluster|\d+ clusters, none of which is assigned .*): correct it, or set allow_empty to true$",
    r"^names no document, now or then: ",
    # Tokens: names that the audit has for others, and times that are over.
    r"^is what the audit calls somebody else: ",
    r"^is .*, which is over already$",
    # The past ends now.
    r"^is .*, which is (in the future|still to come: .*)$",
    # Texts with a grammar of their own, which a pattern would not make clearer.
    r"\(at position \d+\)$",
    r"^must be a duration from .* to ",
    r"^must be where clusters reach the service, ",
    # A merge patch leaves the other fields as they are, and they have a say in this one.
    r"^must be one of helm, not ",
    # How a component is delivered decides what its patches are called, and these do not contradict each other.
    r"^must be a variable \(letters, digits and \"_\", no digit first\), as only charts take Helm paths, not ",
    r"^(is a part of|is the same path as|makes (a list|an object) of what) ",
    r"^does not go with the patches of ",
    # Ids that the cluster itself has, and sizes in bytes.
    r"^is reserved: ",
    r"^has \d+ bytes of UTF-8, ",
]
# Refusals that tell of the fleet, or of an earlier request, and never of this one alone.
STATE = ["precondition_failed", "idempotency_mismatch"]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    return not (isinstance(failure, RejectedPositiveData) and follows_rules(case, response.json()))


def follows_rules(case, problem):
    if problem["error"] in STATE:
        return True
    details = problem.get("details", [])
    return problem["error"] == "validation_error" and bool(details) and all(is_ruled(case, each) for each in details)


def is_ruled(case, detail):
    message = detail["message"]
    # Which characters there are changes with Unicode, so that no pattern tells.
    if re.match(r"must be (text|the name of a role) on one line", message):
        return any(unicodedata.category(char) == "Cn" for char in json.dumps(case.body, ensure_ascii=False))
    return is_json_patch(case, detail["path"]) or any(re.search(rule, message, re.S) for rule in RULES)


def is_json_patch(case, path):
    """What a JSON patch makes of a document cannot be seen from the patch."""
    if case.media_type == "application/json-patch+json":
        return True
    place = re.match(r"/operations/(\d+)/patch", path)
    return bool(place) and isinstance(case.body["operations"][int(place[1])].get("patch"), list)


@schemathesis.check
def access_by_role(ctx, response, case):
    """Nobody gets further than their role, whatever they send."""
    status = response.status_code
    needed = role_for(case.operation)
    # A path that cannot be read, or leads elsewhere, is refused before anybody is asked who they are.
    is_lost = not is_valid(case, ParameterLocation.PATH) and status in (400, 404)
    if needed is None or is_lost or response.request.method != case.operation.method.upper():
        return
    if ROLE == "anonymous":
        expect(case, status, status == 401, "401: there was no token")
    elif RANKS[ROLE] < RANKS[needed]:
        expect(case, status, status == 403, f"403: this needs the role {needed}")
    elif needed == "viewer" and response.request.method != "GET" and RANKS[ROLE] < RANKS["editor"]:
        is_preview = status == 200 and response.json().get("dry_run") is True
        expect(case, status, is_preview or 400 <= status < 500, "a preview or a refusal: this writes")


def expect(case, status, holds, what):
    if not holds:
        raise Failure(operation=case.operation.label, title="Wrong access", message=f"Got {status}, expected {what}")


RANKS = {
    "cluster": 0,
    "poller": 1,
    "mirror": 2,
    "viewer": 3,
    "reader": 3,
    "editor": 4,
    "scoped-editor": 4,
    "admin": 5,
    "writer": 5,
}


def role_for(operation):
    """The least that one must be; of writes, to see what they would do."""
    path = operation.path
    if operation.definition.raw.get("security") == []:
        return None
    if path.startswith("/tokens"):
        return "admin"
    # The log is copied by mirrors, and by those who may do everything.
    if path == "/log":
        return "mirror" if ROLE == "mirror" else "admin"
    if path == "/watch":
        return "mirror"
    if path == "/whoami" or path.startswith("/api/v2/flux/clusters/"):
        return "cluster"
    return "poller" if path == "/api/v2/flux/clusters" else "viewer"
