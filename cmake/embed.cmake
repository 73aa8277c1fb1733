# Write the bytes of INPUT as the body of a C array to OUTPUT, ended by a 0 (a string literal may not be that long).
get_filename_component(INPUT_NAME ${INPUT} NAME)
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made from ${INPUT_NAME}. */\n${bytes}0x00\n")
