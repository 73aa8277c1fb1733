/*
 * A terminal that is given back even if the program crashes under it.
 *
 * Threading: guard and release from one thread; the handler runs on any and uses only what a
 * signal handler may.
 */
#ifndef VIEW_CRASH_H
#define VIEW_CRASH_H

/* After the terminal was taken (ncurses is ready), with what it was before. Signals that somebody
 * else handles (a sanitizer) are left to him. */
struct termios;
void view_crash_guard(const struct termios *before);
void view_crash_release(void);

#endif /* VIEW_CRASH_H */
