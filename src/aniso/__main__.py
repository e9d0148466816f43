"""`python -m aniso`."""

from aniso.cli import main

if __name__ == "__main__":
    main()
