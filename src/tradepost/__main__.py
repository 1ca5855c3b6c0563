"""The command `tradepost`."""

from tradepost.cli.app import main

if __name__ == "__main__":
    main()
