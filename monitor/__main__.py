"""`python -m monitor` is the `monitor` command."""

from monitor.cli import main

if __name__ == "__main__":
    main()
