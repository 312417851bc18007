#!/usr/bin/env python
"""Django's command line for NEXUS."""

import sys

from nexus_site.run.command import end_when_asked, manage, use_environment

if __name__ == "__main__":
    use_environment()
    end_when_asked()
    sys.exit(manage(sys.argv))
