"""``python -m offsetd.settings``: print the settings page."""

import sys

from offsetd.settings.page import settings_page

if __name__ == "__main__":
    sys.stdout.write(settings_page())
