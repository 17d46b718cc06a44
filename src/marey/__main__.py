"""`python -m marey` is `marey`."""

from marey.cli import main

if __name__ == "__main__":
    main()
