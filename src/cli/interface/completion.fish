# fish completion of farfault. Printed by `farfault completion fish`; the tables are those of the commands' own options.

# True if the command is $argv[1] and, given $argv[2], it is that argument's turn (1, 2 ...; "2+": also later ones). Further words are the
# command's options that take a value.
function __farfault_at
    set -l tokens (commandline -opc)
    test (count $tokens) -ge 2; and test "$tokens[2]" = "$argv[1]"; or return 1
    test (count $argv) -ge 2; or return 0
    set -l place 1
    set -l value no
    for token in $tokens[3..-1]
        if test $value = yes
            set value no
        else if test "$token" = --
            continue
        else if string match -q -- '-*' $token
            contains -- $token $argv[3..-1]; and set value yes
        else
            set place (math $place + 1)
        end
    end
    test $place = $argv[2]; or begin
        string match -q '*+' $argv[2]; and test $place -ge (string trim -c + $argv[2])
    end
end

# "copy,uvm+evict=l": managers with commas between them, parts behind "+".
function __farfault_managers
    set -l word (commandline -ct | string replace -r '^--?[a-zA-Z0-9-]+=' '')
    set -l before (string replace -r '[^,]*$' '' -- $word)
    set -l item (string replace -r '^.*,' '' -- $word)
    if string match -qr '\+(evict|prefetch)=[^+]*$' -- $item
        printf '%s\n' $before(string replace -r '=[^+]*$' '=' -- $item)$__farfault_policies
    else if string match -q '*+*' -- $item
        printf '%s\n' $before(string replace -r '[^+]*$' '' -- $item)$__farfault_settings
    else
        printf '%s\n' $before$__farfault_managers
    end
end

function __farfault_machine
    farfault list machines 2>/dev/null | string replace -r ' +' '\t' | string replace -r '  +.*' ''
    __fish_complete_suffix .yaml
end

function __farfault_policy
    printf '%s\n' $__farfault_policies
    __fish_complete_suffix .so
end

@tables@
