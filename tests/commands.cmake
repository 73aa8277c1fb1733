ipuscope_add_script(NAME commands LABELS golden)
