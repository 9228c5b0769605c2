package prony;

import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;

/** What a native image must keep, though only names in strings lead there. Unused on the JVM. */
class NativeHints implements RuntimeHintsRegistrar {

    // Caffeine's own, generated for a cache that is bounded and expires after a write.
    private static final String CACHE = "com.github.benmanes.caffeine.cache.SSMSW";
    private static final String NODE = "com.github.benmanes.caffeine.cache.PSWMS";

    @Override
    public void registerHints(RuntimeHints hints, ClassLoader classLoader) {
        hints.resources().registerPattern("lorem.txt");
        for (String name : new String[] {CACHE, NODE}) {
            hints.reflection().registerTypeIfPresent(classLoader, name,
                    MemberCategory.INVOKE_DECLARED_CONSTRUCTORS,
                    MemberCategory.ACCESS_DECLARED_FIELDS);
        }
    }
}
