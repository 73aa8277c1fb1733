# What is installed beyond the programs: each room installs its own public headers and libraries.
