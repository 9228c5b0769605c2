package prony.common;

import jakarta.validation.Constraint;
import jakarta.validation.ConstraintValidator;
import jakarta.validation.ConstraintValidatorContext;
import jakarta.validation.Payload;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.LocalDate;

/** A date of the years 1 to 9999: Java knows more of them than PostgreSQL. */
@Constraint(validatedBy = Day.OfFourDigits.class)
@Target(ElementType.FIELD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Day {

    String message() default "is missing, or not of the years 1 to 9999";

    Class<?>[] groups() default {};

    Class<? extends Payload>[] payload() default {};

    /** Public, as Hibernate Validator makes it by its constructor. */
    class OfFourDigits implements ConstraintValidator<Day, LocalDate> {

        private static final int LAST_YEAR = 9999;

        @Override
        public boolean isValid(LocalDate date, ConstraintValidatorContext context) {
            return date != null && date.getYear() >= 1 && date.getYear() <= LAST_YEAR;
        }
    }
}
