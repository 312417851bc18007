"""The company drawn: its chain of command with live state, and its contact rules as a matrix."""
