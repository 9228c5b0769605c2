package prony.common;

import jakarta.validation.Constraint;
import jakarta.validation.Payload;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Pattern;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Text that any database can keep and any answer can hold: not blank, without control characters,
 * of which PostgreSQL refuses U+0000, and without halves of surrogate pairs, which are no UTF-8.
 */
@NotBlank
@Pattern(regexp = "[^\\p{Cc}\\p{Cs}]*")
@Constraint(validatedBy = {})
@Target(ElementType.FIELD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Text {

    String message() default "is blank, or has characters that are no text";

    Class<?>[] groups() default {};

    Class<? extends Payload>[] payload() default {};
}
