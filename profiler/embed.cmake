# Write the bytes of INPUT as the body of a C array to OUTPUT (a string literal may not be that long).
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made from schema.sql. */\n${bytes}0x00\n")
