"""``python -m offsetd`` and the ``offsetd`` command."""

from offsetd.cli import commands


def main() -> None:
    """Run the command line; it exits the process."""
    commands.main(prog_name="offsetd")


if __name__ == "__main__":
    main()
