# Run at every build (cmake -P): writes the commit into HEADER, only when it has changed, so that
# nothing is compiled again for nothing.
execute_process(
  COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=10 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define SEPTET_COMMIT \"${commit}\"\n")
