/*
 * Included before all else in each test_x.c, whose main() is compiled as main_test_x(): a module of
 * its room's program. See modules_run.c.
 */
#ifndef SUPPORT_MODULE_MAIN_H
#define SUPPORT_MODULE_MAIN_H

int main(void);

#endif /* SUPPORT_MODULE_MAIN_H */
