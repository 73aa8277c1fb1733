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

/* For a signal handler: give the terminal back, without waiting where it takes nothing, and end the
 * program with @code. */
void view_crash_leave(int code) __attribute__((noreturn));

#endif /* VIEW_CRASH_H */
