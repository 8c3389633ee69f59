# bash completion of farfault. Printed by `farfault completion bash`; the tables are those of the commands' own options.
@tables@

# The words up to the cursor as farfault will see them: bash cuts at "=" and ":".
_farfault_words() {
  local word glue=''
  words=()
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ ${#words[@]} -gt 0 && ($glue || $word == [=:]*) ]]; then
      words[${#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
    glue=
    [[ $word == *[=:] ]] && glue=1
  done
}

_farfault_files() { # $1: suffixes, "": all files, "/": only folders
  local file suffix
  while IFS= read -r file; do
    if [[ -d $file ]]; then
      COMPREPLY+=("$file/")
      compopt -o nospace 2>/dev/null
    elif [[ -z $1 ]]; then
      COMPREPLY+=("$file")
    else
      for suffix in $1; do [[ $file == *."$suffix" ]] && COMPREPLY+=("$file"); done
    fi
  done < <(compgen -f -- "$2")
  compopt -o filenames 2>/dev/null
}

_farfault_list() { # $1: prefix that stays, $2: what is completed, $3...: words
  local prefix=$1 cur=$2
  shift 2
  COMPREPLY+=($(compgen -P "$prefix" -W "$*" -- "$cur"))
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

# "copy,uvm+evict=l": managers with commas between them, parts behind "+".
_farfault_managers_of() { # $1: the word
  local before='' item=${1##*,} part
  [[ $1 == *,* ]] && before=${1%,*},
  if [[ $item != *+* ]]; then
    _farfault_list "$before" "$item" $_farfault_managers
    return
  fi
  part=${item##*+}
  before+=${item%+*}+
  case $part in
  evict=* | prefetch=*) _farfault_list "$before${part%%=*}=" "${part#*=}" $_farfault_policies ;;
  *=*) _farfault_value "${_farfault_parts[${part%%=*}]-}" "${part#*=}" "$before${part%%=*}=" ;;
  *) _farfault_list "$before" "$part" $_farfault_settings ;;
  esac
}

_farfault_value() { # $1: kind, $2: what is completed, $3: prefix that stays
  case $1 in
  managers) _farfault_managers_of "$2" ;;
  machine)
    _farfault_list "" "$2" $("${COMP_WORDS[0]}" list machines 2>/dev/null | cut -d' ' -f1)
    _farfault_files yaml "$2"
    ;;
  setting) _farfault_list "" "$2" $_farfault_values ;;
  policy)
    _farfault_list "" "$2" $_farfault_policies
    _farfault_files so "$2"
    ;;
  paper) _farfault_list "" "$2" $_farfault_papers ;;
  command) _farfault_list "" "$2" $_farfault_commands ;;
  folder) _farfault_files / "$2" ;;
  file) _farfault_files "" "$2" ;;
  file:*) _farfault_files "${1#file:}" "$2" ;;
  program) COMPREPLY+=($(compgen -c -- "$2")) && _farfault_files "" "$2" ;;
  words:*) _farfault_list "${3-}" "$2" ${1#words:} ;;
  esac
}

# The kind of the option's value: "" if it takes none. $1: command, $2: option
_farfault_kind() {
  local entry
  while IFS= read -r entry; do
    [[ ${entry%%	*} == "$2" ]] && echo "${entry#*	}" && return
  done <<<"${_farfault_options[$1]}"
}

_farfault() {
  local words cur command i kind value='' count=0 names
  _farfault_words
  COMPREPLY=()
  cur=${words[${#words[@]}-1]}
  if [[ ${#words[@]} -eq 2 ]]; then
    _farfault_list "" "$cur" $_farfault_commands help --help --version
    return
  fi
  command=${words[1]}
  if [[ $command == help ]]; then
    _farfault_list "" "$cur" $_farfault_commands
    return
  fi
  [[ -v _farfault_options[$command] ]] || return
  local -a arguments
  IFS='	' read -ra arguments <<<"${_farfault_arguments[$command]}"
  # Which words are options' values, which are arguments.
  for ((i = 2; i < ${#words[@]} - 1; i++)); do
    if [[ $value ]]; then
      value=
    elif [[ ${words[i]} == -- ]]; then
      :
    elif [[ ${words[i]} == -* ]]; then
      [[ ${words[i]} == *=* ]] || value=$(_farfault_kind "$command" "${words[i]}")
    else
      [[ ${arguments[count]-} == program ]] && { _farfault_program $((i)); return; }
      [[ ${arguments[count]-} == *+ ]] || count=$((count + 1))
    fi
  done
  if [[ $value ]]; then
    _farfault_value "$value" "$cur"
  elif [[ $cur == --*=* ]]; then
    value=$(_farfault_kind "$command" "${cur%%=*}")
    _farfault_value "$value" "${cur#*=}"
    COMPREPLY=("${COMPREPLY[@]/#/${cur%%=*}=}")
  elif [[ $cur == -* ]]; then
    names=$(while IFS='	' read -r i kind; do echo "$i${kind:+=}"; done <<<"${_farfault_options[$command]}")
    _farfault_list "" "$cur" $(grep -- '^--' <<<"$names")
    [[ $cur == - ]] && COMPREPLY+=($(grep -v -- '^--' <<<"$names" | tr -d =))
  else
    kind=${arguments[count]-}
    _farfault_value "${kind%+}" "$cur"
  fi
  # bash replaces only what stands behind the last "=" or ":".
  if [[ $cur == *[=:]* && $COMP_WORDBREAKS == *=* ]]; then
    local stays=${cur%"${cur##*[=:]}"}
    COMPREPLY=("${COMPREPLY[@]#"$stays"}")
  fi
}

# What stands behind the program is the program's: its own completion if bash-completion is there, else files.
_farfault_program() {
  local i
  for ((i = 2; i <= COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == "${words[$1]}" ]] && break
  done
  if declare -F _command_offset >/dev/null; then _command_offset "$i"; else _farfault_files "" "$cur"; fi
}

complete -F _farfault farfault
