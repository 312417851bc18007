"""The live feed: what happens in the company, for the people who are signed in."""
