#!/usr/bin/env python
"""Django's command line for NEXUS."""

import sys

from nexus_site.run.command import manage

if __name__ == "__main__":
    sys.exit(manage(sys.argv))
