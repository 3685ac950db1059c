"""The command line: ``moopt COMMAND ...``. ``main.py`` is the front; every command family is one file."""
