#compdef farfault
# zsh completion of farfault. Printed by `farfault completion zsh`; the tables are those of the commands' own options.
@tables@

_farfault_machine() {
  local -a machines
  machines=(${(f)"$(farfault list machines 2>/dev/null | cut -d' ' -f1)"})
  compadd -a machines
  _files -g '*.yaml'
}

_farfault_policy() {
  compadd -a _farfault_policies
  _files -g '*.so'
}

_farfault_paper() { compadd -a _farfault_papers }

_farfault_setting() { compadd -S '' -a _farfault_values }

_farfault_program() { _alternative 'commands:command:_command_names -e' 'files:file:_files' }

# "copy,uvm+evict=l": managers with commas between them, parts behind "+".
_farfault_managers() {
  compset -P '*,'
  if compset -P '*+'; then
    if compset -P '(evict|prefetch)='; then compadd -q -S , -a _farfault_policies
    elif compset -P 'faults='; then compadd -q -S , block replay batch
    elif compset -P 'l2='; then compadd -q -S , keep flush
    elif compset -P 'write-back='; then compadd -q -S , serial overlapped
    elif ! compset -P '*='; then compadd -S '' -a _farfault_settings
    fi
  else
    compadd -q -S , -a _farfault_managers
  fi
}

_farfault_command() { _describe -t commands command _farfault_described }

_farfault() {
  local curcontext=$curcontext state line
  _arguments -C '(- *)--help[list the commands]' '(- *)--version[print the version]' '1:command:_farfault_command' '*::arguments:->command'
  [[ $state == command ]] || return
  if [[ $words[1] == help ]]; then
    _farfault_command
  elif (( $+functions[_farfault-$words[1]] )); then
    curcontext=${curcontext%:*}-$words[1]:
    _farfault-$words[1]
  fi
}

if [[ $funcstack[1] == _farfault ]]; then _farfault "$@"; else compdef _farfault farfault; fi
