"""Any event that can be recorded, for properties."""

from datetime import UTC

from hypothesis import strategies as st

from core.actions import Action
from core.events import SHORT, Event, EventOutcome

storable = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=SHORT
)
numbers = st.none() | st.integers(-(2**63) + 1, 2**63 - 1)
details = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(-(2**53) + 1, 2**53 - 1, allow_nan=False)
    | storable,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(storable, inner, max_size=4),
    max_leaves=12,
)
detail_maps = st.dictionaries(storable, details, max_size=4)
events = st.builds(
    Event,
    id=st.uuids(),
    action=storable.filter(lambda name: name not in set(Action)),  # those have their own kinds
    actor=storable,
    at=st.datetimes(timezones=st.just(UTC)),
    organisation_id=numbers,
    decision=st.sampled_from(EventOutcome),
    code=storable,
    reason=storable,
    tool=storable,
    subject=storable,
    policy_version=numbers,
    args_digest=storable,
    request_id=storable,
    session_id=storable,
    for_agent_id=numbers,
    kind=storable,
    details=detail_maps,
)
