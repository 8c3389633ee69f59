#include "check/private.h"
void check_racecheck_hooks(exec_checker *hooks) {}
