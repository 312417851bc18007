"""The pages of sessions, frames and scheduled jobs; importing them registers them."""

from toolbox.admin import frames as frames
from toolbox.admin import schedule as schedule
from toolbox.admin import sessions as sessions
from toolbox.admin import stored as stored
