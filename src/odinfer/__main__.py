"""The command `odinfer` as `python -m odinfer`."""

from odinfer.apps.command import main

if __name__ == "__main__":
    main()
