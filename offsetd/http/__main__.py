"""``python -m offsetd.http``: print the metrics page."""

import sys

from offsetd.http.page import metrics_page

if __name__ == "__main__":
    sys.stdout.write(metrics_page())
