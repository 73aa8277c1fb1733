/*
 * Keys as terminals send them that are of another type than TERM says: the usual sequences, so that
 * they do what they say instead of being taken for Esc and letters.
 */
#ifndef VIEW_ESCAPE_H
#define VIEW_ESCAPE_H

#include <stdint.h>

/* What ESC and then @text ("[4~", "OF") mean; VIEW_KEY_NONE: nothing that is known here. */
uint32_t view_escape_key(const char *text);

#endif /* VIEW_ESCAPE_H */
